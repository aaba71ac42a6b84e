"""Pools: every decision about edges, by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.tape import ShapeError, Tape, gradcheck, ops

INF, NAN = np.inf, np.nan
Function = Callable[[Any], Any]


def value(function: Function, x: Any, dtype: Any = np.float64) -> Any:
    return function(Tape().leaf(np.asarray(x, dtype))).numpy()


def gradient(function: Function, x: Any, seed: Any = None, dtype: Any = np.float64) -> Any:
    tape: Tape[Any] = Tape()
    leaf = tape.leaf(np.asarray(x, dtype))
    out = function(leaf)
    seed = np.ones(tuple(out.shape), dtype) if seed is None else np.asarray(seed, dtype)
    return np.asarray(tape.backward_dense(out, seed)[leaf])


def pairs(x: Any) -> Any:
    """A maximum of every two neighbours."""
    return ops.max_pool(x, (2,), stride=1)


def ascending(*shape: int) -> Any:
    return np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)


@pytest.mark.parametrize("name", ["max_pool", "avg_pool", "smooth_max_pool"])
def test_documented_names_are_covered(name: str) -> None:
    assert name in ops.OPS[name].covers


def test_the_last_axes_are_spatial_and_all_before_them_are_alike(tape: Tape[Any]) -> None:
    x = ascending(2, 3, 4, 6)
    whole = ops.max_pool(tape.leaf(x), (2, 3)).numpy()
    assert whole.tolist() == x.reshape(2, 3, 2, 2, 2, 3).max((3, 5)).tolist()
    for i in np.ndindex(2, 3):
        assert ops.max_pool(tape.leaf(x[i]), (2, 3)).numpy().tolist() == whole[i].tolist()
    assert ops.max_pool(tape.leaf(x), (2,)).shape == (2, 3, 4, 3)
    assert ops.max_pool(tape.leaf(x), (3, 2, 2)).shape == (2, 1, 2, 3)
    assert ops.max_pool(tape.leaf(x), (2, 1, 2, 2)).shape == (1, 3, 2, 3)


def test_the_stride_is_the_kernels_size_if_none_is_given(tape: Tape[Any]) -> None:
    x = tape.leaf(ascending(1, 7, 9))
    assert ops.max_pool(x, (2, 3)).shape == ops.max_pool(x, (2, 3), (2, 3)).shape == (1, 3, 3)
    assert ops.max_pool(x, (2, 3), 1).shape == (1, 6, 7)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation", "expected"),
    [
        (7, 2, 2, 0, 1, 3),
        (7, 3, 2, 1, 1, 4),
        (8, 3, 3, 0, 2, 2),
        (5, 5, 1, 2, 1, 5),
        (1, 2, 1, 1, 1, 2),
        (9, 1, 4, 0, 1, 3),
    ],
)
def test_output_sizes_are_rounded_down(
    tape: Tape[Any], size: int, kernel: int, stride: int, padding: int, dilation: int, expected: int
) -> None:
    out = ops.max_pool(tape.leaf(ascending(1, size)), (kernel,), stride, padding, dilation)
    assert out.shape == (1, expected)


def test_cells_that_no_window_reaches_get_zero() -> None:
    x = ascending(1, 5, 5)
    assert gradient(lambda x: ops.max_pool(x, (2, 2)), x)[0].tolist() == [
        [0, 0, 0, 0, 0], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0],
    ]  # fmt: skip
    assert gradient(lambda x: ops.avg_pool(x, (1,), 3), ascending(1, 5)).tolist() == [[1, 0, 0, 1, 0]]


def test_padded_cells_never_win() -> None:
    x = -ascending(1, 2, 2)
    out = value(lambda x: ops.max_pool(x, (2, 2), 1, 1), x)
    assert out[0].tolist() == [[-1, -1, -2], [-1, -1, -2], [-3, -3, -4]]
    assert value(lambda x: ops.max_pool(x, (2,), 1, 1), [[-INF, -INF]]).tolist() == [[-INF] * 3]
    assert gradient(lambda x: ops.max_pool(x, (2,), 1, 1), [[-INF, -INF]]).tolist() == [[2, 1]]


def test_ties_go_to_the_first_cell_in_row_major_order_whole() -> None:
    assert gradient(lambda x: ops.max_pool(x, (2, 2)), [[1.0, 3.0], [3.0, 3.0]]).tolist() == [[0, 1], [0, 0]]
    assert gradient(lambda x: ops.max_pool(x, (2, 2)), [[1.0, 2.0], [3.0, 3.0]]).tolist() == [[0, 0], [1, 0]]
    assert gradient(pairs, [[5.0, 5.0, 5.0]], [[1.0, 10.0]]).tolist() == [[1, 10, 0]]


def test_ties_go_to_the_first_cell_in_vectors_too() -> None:
    x = np.zeros((1, 2, 80))
    for stride in (2, 1):
        out = gradient(lambda x, stride=stride: ops.max_pool(x, (2, 2), (2, stride)), x)
        assert out[0, 1].tolist() == [0] * 80
        assert out[0, 0].tolist() == ([1, 0] * 40 if stride == 2 else [1] * 79 + [0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_wins_and_the_first_takes_the_gradient(dtype: Any) -> None:
    row = [[1.0, NAN, INF, NAN, NAN, 2.0, 3.0]]
    assert np.isnan(value(pairs, row, dtype)).tolist() == [[True, True, True, True, True, False]]
    seed = [[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]]
    assert gradient(pairs, row, seed, dtype).tolist() == [[0, 3, 0, 12, 16, 0, 32]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_nans_are_one(dtype: Any) -> None:
    row = np.array([NAN] * 48, dtype)
    row.view(f"u{row.itemsize}")[1::2] ^= 1  # another payload
    row.view(f"u{row.itemsize}")[2::3] |= 1 << (8 * row.itemsize - 1)  # another sign
    out = gradient(lambda x: ops.max_pool(x, (4,)), row[None], dtype=dtype)
    assert out.tolist() == [[1, 0, 0, 0] * 12]


def test_minus_zero_is_less_than_plus_zero() -> None:
    row = [[-0.0, 0.0, -0.0, -0.0]]
    assert np.signbit(value(pairs, row)).tolist() == [[False, False, True]]
    assert gradient(pairs, row).tolist() == [[0, 2, 1, 0]]


def test_a_gradient_of_minus_zero_is_added_to_plus_zero() -> None:
    for function in (
        lambda x: ops.max_pool(x, (2,)),
        lambda x: ops.max_pool(x, (2,), 1),
        lambda x: ops.avg_pool(x, (2,)),
    ):
        seed = np.full(np.shape(value(function, ascending(1, 4))), -0.0)
        assert not np.signbit(gradient(function, ascending(1, 4), seed)).any()


def test_sources_are_added_in_ascending_order() -> None:
    big = 2.0**24
    for order, expected in (([1.0, big, -big], 0.0), ([big, -big, 1.0], 1.0)):
        spread = gradient(lambda x: ops.max_pool(x, (3,), 1), [[0, 0, 9.0, 0, 0]], [order], np.float32)
        assert spread.tolist() == [[0, 0, expected, 0, 0]]
        mean = gradient(lambda x: ops.avg_pool(x, (4,), 1, 1), [[0.0] * 4], [np.multiply(order, 4.0)], np.float32)
        assert mean[0, 1] == expected


def test_a_window_adds_its_cells_in_row_major_order() -> None:
    big = 2.0**24
    for cells, expected in (([[1.0, big], [-big, 0.0]], 0.0), ([[big, -big], [1.0, 0.0]], 0.25)):
        assert value(lambda x: ops.avg_pool(x, (2, 2)), cells, np.float32).tolist() == [[expected]]


def test_padding_is_at_most_half_of_what_the_kernel_spans(tape: Tape[Any]) -> None:
    x = tape.leaf(ascending(1, 9))
    assert ops.max_pool(x, (4,), 1, 2).shape == (1, 10)
    assert ops.max_pool(x, (2,), 1, 2, dilation=3).shape == (1, 10)
    with pytest.raises(ShapeError, match=r"expected at most half of what the kernel spans, \(3,\), got 2"):
        ops.max_pool(x, (3,), 1, 2)


def test_a_window_without_a_real_cell_is_refused(tape: Tape[Any]) -> None:
    with pytest.raises(ShapeError, match="sizes that hold a cell of every window"):
        ops.max_pool(tape.leaf(ascending(1, 1)), (2,), 1, 2, dilation=3)


def test_dilated_windows_skip_cells() -> None:
    x = [[5.0, 9.0, 1.0, 2.0, 7.0, 3.0]]
    assert value(lambda x: ops.max_pool(x, (3,), 1, 0, 2), x).tolist() == [[7, 9]]
    assert gradient(lambda x: ops.max_pool(x, (2,), 1, 1, 2), x, [[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]]).tolist() == [
        [2, 5, 0, 0, 40, 16]
    ]


def test_padded_cells_are_counted_unless_told_otherwise() -> None:
    x = [[[4.0, 8.0], [12.0, 16.0]]]
    assert value(lambda x: ops.avg_pool(x, (2, 2), 1, 1), x)[0].tolist() == [[1, 3, 2], [4, 10, 6], [3, 7, 4]]
    real = value(lambda x: ops.avg_pool(x, (2, 2), 1, 1, count_include_pad=False), x)[0]
    assert real.tolist() == [[4, 6, 8], [8, 10, 12], [12, 14, 16]]


@pytest.mark.parametrize("include", [True, False])
def test_the_gradient_of_a_mean_is_shared_among_the_cells_that_count(include: bool) -> None:
    out = gradient(lambda x: ops.avg_pool(x, (2,), 2, 1, include), [[1.0, 2.0, 3.0]], [[2.0, 8.0]])
    assert out.tolist() == [[1.0 if include else 2.0, 4.0, 4.0]]


def test_a_mean_of_minus_zeros_is_plus_zero() -> None:
    assert not np.signbit(value(lambda x: ops.avg_pool(x, (2,)), [[-0.0, -0.0]])).any()


@pytest.mark.parametrize(("size", "count"), [(5, 2), (7, 3), (6, 3), (3, 5), (4, 4), (9, 1)])
def test_windows_that_adapt_go_from_the_floor_to_the_ceiling(size: int, count: int) -> None:
    x = np.random.default_rng(size).standard_normal((1, size))
    ends = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
    largest = value(lambda x: ops.adaptive_max_pool(x, (count,)), x)
    assert largest.tolist() == [[x[0, a:b].max() for a, b in ends]]
    mean = value(lambda x: ops.adaptive_avg_pool(x, (count,)), x)
    np.testing.assert_allclose(mean, [[x[0, a:b].mean() for a, b in ends]], rtol=1e-14)


def test_a_smooth_maximum_shares_its_gradient_by_a_softmax() -> None:
    x, beta = np.array([[0.5, -1.0, 2.0, 0.0]]), 1.5
    e = np.exp(beta * x)
    smooth = lambda x: ops.smooth_max_pool(x, (4,), beta=beta)  # noqa: E731
    np.testing.assert_allclose(value(smooth, x), np.log(e.sum()) / beta, rtol=1e-14)
    np.testing.assert_allclose(gradient(smooth, x, [[3.0]]), 3 * e / e.sum(), rtol=1e-14)


def test_padded_cells_take_no_part_in_a_smooth_maximum() -> None:
    out = value(lambda x: ops.smooth_max_pool(x, (2,), 1, 1), [[-3.0, -3.0]])
    np.testing.assert_allclose(out, [[-3, np.log(2) - 3, -3]], rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("beta", [1.0, -1.0, 50.0])
def test_a_smooth_maximum_does_not_overflow(beta: float, dtype: Any) -> None:
    huge = float(np.finfo(dtype).max) / 2
    for row in ([1e4, 1e4], [-1e4, -1e4], [huge, huge], [-huge, 0.0]):
        out = value(lambda x: ops.smooth_max_pool(x, (2,), beta=beta), [row], dtype)
        extreme = max(row) if beta > 0 else min(row)
        expected = extreme + (np.log(2) / beta if row[0] == row[1] else 0)
        np.testing.assert_allclose(out, [[expected]], rtol=1e-6)


@pytest.mark.parametrize(
    ("row", "beta", "expected"),
    [([-INF, -INF], 1.0, -INF), ([INF, 0.0], 1.0, INF), ([-INF, 2.0], 1.0, 2.0), ([INF, INF], -1.0, INF),
     ([-INF, 0.0], -1.0, -INF), ([NAN, 0.0], 1.0, NAN), ([INF, 2.0], -1.0, 2.0)],
)  # fmt: skip
def test_infinities_in_a_smooth_maximum(row: list[float], beta: float, expected: float) -> None:
    np.testing.assert_equal(value(lambda x: ops.smooth_max_pool(x, (2,), beta=beta), [row]), [[expected]])


def test_a_smooth_maximum_has_derivatives_of_third_order() -> None:
    x = np.random.default_rng(0).standard_normal((1, 6))

    def second(x: Any) -> Any:
        out = ops.smooth_max_pool(x, (3,), 2, 1, 1.5)
        first = x.tape.backward_dense(out, np.ones(out.shape), create_graph=True)[x]
        return x.tape.backward_scalar(ops.reduce_sum(first * first * first), create_graph=True)[x]

    assert gradcheck(second, x).ok


def test_no_leading_axes(tape: Tape[Any]) -> None:
    x = tape.leaf(ascending(4, 4))
    assert ops.max_pool(x, (2, 2)).numpy().tolist() == [[6, 8], [14, 16]]
    assert ops.avg_pool(x, (2, 2)).numpy().tolist() == [[3.5, 5.5], [11.5, 13.5]]
    assert ops.adaptive_max_pool(x, (1, 1)).numpy().tolist() == [[16]]


@pytest.mark.parametrize("shape", [(0, 4, 4), (2, 0, 4, 4)])
def test_leading_axes_of_size_zero(tape: Tape[Any], shape: tuple[int, ...]) -> None:
    for pool in (ops.max_pool, ops.avg_pool, ops.smooth_max_pool, ops.adaptive_max_pool, ops.adaptive_avg_pool):
        x = tape.leaf(np.zeros(shape))
        out = pool(x, (2, 2))
        assert out.shape == (*shape[:-2], 2, 2)
        assert np.asarray(tape.backward_dense(out, np.zeros(out.shape))[x]).shape == shape


def test_a_list_is_a_tuple(tape: Tape[Any]) -> None:
    x: Any = tape.leaf(ascending(1, 4, 4))
    kernel: Any = [2, 2]
    assert ops.max_pool(x, kernel).shape == (1, 2, 2)

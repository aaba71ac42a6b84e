"""Maxima, positions, products, running sums, variances and logsumexp: edges, and values known from elsewhere."""

# Lambdas carry no types.
# pyright: basic
from typing import Any

import numpy as np
import pytest

from dgrr.tape import Tape, gradcheck, ops

REDUCTIONS: dict[str, Any] = {
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "var": np.var,
    "argmax": np.argmax,
    "argmin": np.argmin,
}


def gradient(function: Any, x: Any, seed: Any = None) -> Any:
    tape: Tape[Any] = Tape()
    leaf = tape.leaf(np.asarray(x, np.float64))
    return np.asarray(tape.backward_dense(function(leaf), seed)[leaf])


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_methods_are_numpys(tape: Tape[Any], name: str, axis: Any, keepdims: bool) -> None:
    x = np.random.default_rng(0).integers(1, 5, (3, 4)).astype(np.float64)
    got = getattr(tape.leaf(x), name)(axis, keepdims).numpy()
    expected = np.asarray(REDUCTIONS[name](x, axis=axis, keepdims=keepdims))
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=1e-15)


def test_the_gradient_of_a_maximum_goes_to_the_first_of_equal_ones() -> None:
    assert gradient(lambda x: x.max(), [2.0, 5.0, 5.0]).tolist() == [0.0, 1.0, 0.0]
    assert gradient(lambda x: x.min(), [2.0, 5.0, 2.0]).tolist() == [1.0, 0.0, 0.0]
    assert gradient(lambda x: x.max(0), [[1.0, 4.0], [1.0, 5.0]], np.array([1.0, 2.0])).tolist() == [[1, 0], [0, 2]]


def test_nan_wins_and_takes_the_gradient() -> None:
    row = [1.0, np.nan, np.inf, np.nan]
    for extreme in (lambda x: x.max(), lambda x: x.min()):
        assert gradient(extreme, row).tolist() == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_nans_are_one(tape: Tape[Any], dtype: Any) -> None:
    row = np.array([1.0, np.nan, np.nan, np.nan], dtype)
    words = row.view(np.uint32 if dtype is np.float32 else np.uint64)
    words[2] |= 1  # another payload
    words[3] |= 1 << (8 * row.itemsize - 1)  # another sign
    for order in ([0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2]):
        x = tape.leaf(row[order])
        assert (x.argmax().item(), x.argmin().item()) == (1, 1)


def test_the_smaller_zero_is_the_negative_one(tape: Tape[Any]) -> None:
    x = tape.leaf(np.array([-0.0, 0.0, -0.0, 0.0]))
    assert np.signbit([x.max().item(), x.min().item()]).tolist() == [False, True]
    assert (x.argmax().item(), x.argmin().item()) == (1, 0)


def test_positions_over_several_axes_count_in_row_major_order(tape: Tape[Any]) -> None:
    x = np.zeros((2, 3, 4))
    x[1, 2, 0], x[0, 1, 3] = 5.0, 6.0
    found = tape.leaf(x).argmax((0, 2)).numpy()
    assert found.tolist() == [np.argmax(x[:, j].reshape(-1)) for j in range(3)] == [0, 3, 4]


def test_a_position_has_no_gradient(tape: Tape[Any]) -> None:
    assert not tape.node(tape.leaf([1.0, 2.0]).argmax()).requires_grad


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([2.0, 3.0, 5.0], [15.0, 10.0, 6.0]),
        ([2.0, 0.0, 5.0], [0.0, 10.0, 0.0]),
        ([0.0, 0.0, 5.0], [0.0, 0.0, 0.0]),
        ([7.0], [1.0]),
    ],
)
def test_zeros_in_a_product_have_exact_gradients(row: list[float], expected: list[float]) -> None:
    assert gradient(lambda x: x.prod(), row).tolist() == expected


def test_the_hessian_of_a_product_with_zeros(tape: Tape[Any]) -> None:
    x = tape.leaf(np.array([0.0, 3.0, 5.0, 7.0]))
    first = tape.backward_scalar(x.prod(), create_graph=True)[x]
    second = tape.backward_scalar(first[1])[x]  # type: ignore[index]
    assert np.asarray(second).tolist() == [35.0, 0.0, 0.0, 0.0]


def test_the_third_derivative_of_a_product(tape: Tape[Any]) -> None:
    x = tape.leaf(np.array([2.0, 3.0, 5.0, 7.0]))
    first = tape.backward_scalar(x.prod(), create_graph=True)[x]
    second = tape.backward_scalar(first[0], create_graph=True)[x]  # type: ignore[index]
    third = tape.backward_scalar(second[1])[x]  # type: ignore[index]
    assert np.asarray(third).tolist() == [0.0, 0.0, 7.0, 5.0]


def test_a_product_of_nothing_is_one(tape: Tape[Any]) -> None:
    assert tape.leaf(np.zeros((2, 0))).prod(1).numpy().tolist() == [1.0, 1.0]


def test_running_sums_and_their_gradient(tape: Tape[Any]) -> None:
    x = tape.leaf(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    assert x.cumsum(0).numpy().tolist() == [[1.0, 2.0], [4.0, 6.0], [9.0, 12.0]]
    assert x.cumsum(-1).numpy().tolist() == [[1.0, 3.0], [3.0, 7.0], [5.0, 11.0]]
    seed = np.array([[1.0, 0.0], [0.0, 10.0], [100.0, 0.0]])
    assert np.asarray(tape.backward_dense(x.cumsum(0), seed)[x]).tolist() == [[101, 10], [100, 10], [100, 0]]


def test_a_running_sum_starts_at_plus_zero(tape: Tape[Any]) -> None:
    assert not np.signbit(tape.leaf(np.array([-0.0, -0.0])).cumsum(0).numpy()).any()


@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, (0, 2)])
def test_var_is_numpys_with_its_correction(tape: Tape[Any], correction: int, axis: Any) -> None:
    x = np.random.default_rng(3).standard_normal((3, 4, 5)) + 1e6
    got = ops.var(tape.leaf(x), axis, correction=correction).numpy()
    np.testing.assert_allclose(got, np.var(x, axis=axis, ddof=correction), rtol=1e-12)
    assert gradcheck(lambda v: ops.var(v, axis, correction=correction), x - 1e6).ok


def test_var_with_nothing_left_to_divide_by_is_nan(tape: Tape[Any]) -> None:
    x = tape.leaf(np.ones((2, 1)))
    assert np.isnan(x.var(1, correction=1).numpy()).all()
    assert np.isnan(x.var(1, correction=5).numpy()).all()
    assert np.isnan(tape.leaf(np.ones((2, 0))).var(1).numpy()).all()


@pytest.mark.parametrize(
    ("row", "value", "slope"),
    [
        ([-np.inf, -np.inf], -np.inf, [0.0, 0.0]),
        ([-np.inf, 0.0], 0.0, [0.0, 1.0]),
        ([1000.0, 1000.0], 1000.0 + np.log(2.0), [0.5, 0.5]),
        ([-1000.0, -1000.0], -1000.0 + np.log(2.0), [0.5, 0.5]),
        ([np.inf, 0.0], np.inf, [np.nan, 0.0]),
        ([np.nan, 0.0], np.nan, [np.nan, np.nan]),
    ],
)
def test_logsumexp_where_a_plain_one_overflows(row: list[float], value: float, slope: list[float]) -> None:
    tape: Tape[Any] = Tape()
    np.testing.assert_allclose(ops.logsumexp(tape.leaf(np.array(row))).item(), value, rtol=1e-15)
    np.testing.assert_allclose(gradient(ops.logsumexp, row), slope, rtol=1e-12)


@pytest.mark.parametrize(
    ("row", "slope"),
    [
        ([np.inf, 1.0, 2.0], [np.nan, 0.0, 0.0]),
        ([np.inf, -np.inf, np.inf], [np.nan, 0.0, np.nan]),
        ([0.0, -np.inf, 0.0], [0.5, 0.0, 0.5]),
        ([-np.inf, -np.inf], [0.0, 0.0]),
        ([np.nan, 1.0], [np.nan, np.nan]),
    ],
)
def test_the_gradient_of_a_logsumexp_of_infinities(row: list[float], slope: list[float]) -> None:
    np.testing.assert_array_equal(gradient(ops.logsumexp, row), slope)


def test_the_second_derivative_of_a_logsumexp_that_is_0(tape: Tape[Any]) -> None:
    x = tape.leaf(np.log(np.array([0.5, 0.5])))
    total = ops.logsumexp(x)
    first = tape.backward_scalar(total, create_graph=True)[x]
    second = np.asarray(tape.backward_scalar(first[0])[x])  # type: ignore[index]
    assert total.item() == 0.0
    np.testing.assert_allclose(second, [0.25, -0.25], rtol=1e-15)


def test_logsumexp_of_nothing(tape: Tape[Any]) -> None:
    assert ops.logsumexp(tape.leaf(np.zeros((2, 0))), 1).numpy().tolist() == [-np.inf, -np.inf]

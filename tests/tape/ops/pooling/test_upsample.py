"""Upsampling: indices, weights and edges, by hand."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dgrr.tape import DomainError, DTypeError, ShapeError, Tape, ops
from dgrr.tape.ops.pooling.kernels.weights import linear, position

INF, NAN = np.inf, np.nan


def value(function: Callable[[Any], Any], x: Any, dtype: Any = np.float64) -> Any:
    return function(Tape().leaf(np.asarray(x, dtype))).numpy()


def gradient(function: Callable[[Any], Any], x: Any, seed: Any, dtype: Any = np.float64) -> Any:
    tape: Tape[Any] = Tape()
    leaf = tape.leaf(np.asarray(x, dtype))
    return np.asarray(tape.backward_dense(function(leaf), np.asarray(seed, dtype))[leaf])


def test_a_scale_repeats_every_cell() -> None:
    x = [[[1.0, 2.0], [3.0, 4.0]]]
    out = value(lambda x: ops.upsample_nearest(x, (2, 3)), x)
    assert out[0].tolist() == [[1, 1, 1, 2, 2, 2]] * 2 + [[3, 3, 3, 4, 4, 4]] * 2


@pytest.mark.parametrize(("size", "count"), [(5, 7), (3, 8), (7, 3), (6, 6), (1, 4), (10, 49)])
def test_the_nearest_cell_is_found_in_whole_numbers(size: int, count: int) -> None:
    x = np.arange(float(size))[None]
    assert value(lambda x: ops.upsample_nearest(x, size=(count,)), x)[0].tolist() == [
        i * size // count for i in range(count)
    ]


def test_elements_are_moved_to_the_bit() -> None:
    x = np.array([[-0.0, INF, NAN, 5e-324]])
    assert np.signbit(value(lambda x: ops.upsample_nearest(x, (20,)), x))[0, :20].all()
    np.testing.assert_equal(value(lambda x: ops.upsample_nearest(x, (20,)), x), np.repeat(x, 20, 1))


def test_the_gradient_of_a_cell_is_added_in_ascending_order() -> None:
    big = 2.0**24
    for order, expected in (([1.0, big, -big], 0.0), ([big, -big, 1.0], 1.0)):
        assert gradient(lambda x: ops.upsample_nearest(x, (3,)), [[5.0]], [order], np.float32).tolist() == [[expected]]


def test_cells_that_nothing_reads_get_zero() -> None:
    out = gradient(lambda x: ops.upsample_nearest(x, size=(2,)), [[1.0] * 5], [[3.0, 4.0]])
    assert out.tolist() == [[3, 0, 4, 0, 0]]


def test_either_a_scale_or_a_size_is_given(tape: Tape[Any]) -> None:
    x = tape.leaf(np.ones((1, 2)))
    for given in ({}, {"scale_factor": (2,), "size": (4,)}):
        with pytest.raises(DomainError, match="expected either it or size"):
            ops.upsample_nearest(x, **given)


def test_one_number_for_all_axes_is_refused(tape: Tape[Any]) -> None:
    x: Any = tape.leaf(np.ones((1, 2, 2)))
    number: Any = 2
    with pytest.raises(DTypeError, match="'scale_factor': expected a tuple of whole numbers or None, got 2"):
        ops.upsample_nearest(x, number)


def test_between_cells_corners_aligned_or_not() -> None:
    x = [[[0.0, 8.0]]]
    assert value(lambda x: ops.upsample_bilinear(x, (1, 4)), x)[0, 0].tolist() == [0, 2, 6, 8]
    assert value(lambda x: ops.upsample_bilinear(x, (1, 5), True), x)[0, 0].tolist() == [0, 2, 4, 6, 8]


def test_between_four_cells() -> None:
    x = [[[0.0, 4.0], [16.0, 64.0]]]
    out = value(lambda x: ops.upsample_bilinear(x, (3, 3), True), x)[0]
    assert out.tolist() == [[0, 2, 4], [8, 21, 34], [16, 40, 64]]
    seed = np.zeros((1, 3, 3))
    seed[0, 1, 1] = 8
    assert gradient(lambda x: ops.upsample_bilinear(x, (3, 3), True), x, seed)[0].tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize("align_corners", [False, True])
def test_the_same_size_changes_nothing(align_corners: bool) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 7))
    assert value(lambda x: ops.upsample_bilinear(x, (5, 7), align_corners), x).tolist() == x.tolist()


def test_a_cell_of_weight_zero_has_no_influence() -> None:
    x = [[[1.0, NAN], [INF, 2.0]]]
    out = value(lambda x: ops.upsample_bilinear(x, (3, 3), True), x)[0]
    assert (out[0, 0], out[2, 0], out[2, 2]) == (1, INF, 2)
    assert np.isnan(out[1, 1])


def test_one_output_stands_in_the_middle_or_at_the_first_corner() -> None:
    x = [[[1.0, 2.0, 6.0], [3.0, 4.0, 8.0], [5.0, 0.0, 1.0]]]
    assert value(lambda x: ops.upsample_bilinear(x, (1, 1)), x).tolist() == [[[4.0]]]
    assert value(lambda x: ops.upsample_bilinear(x, (1, 1), True), x).tolist() == [[[1.0]]]


def test_positions_are_exact_and_cut_to_the_axis() -> None:
    assert [position(o, 3, 5, align_corners=False) for o in range(5)] == [
        0, Fraction(2, 5), 1, Fraction(8, 5), 2,
    ]  # fmt: skip
    assert [position(o, 4, 10, align_corners=True) for o in (0, 1, 9)] == [0, Fraction(1, 3), 3]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_are_rounded_once(dtype: Any) -> None:
    for size, count in ((3, 7), (5, 49), (100, 333)):
        out = value(lambda x, c=count: ops.upsample_bilinear(x, (1, c), True), np.eye(size)[:, None], dtype)
        for o in range(count):
            for cell, weight in linear(size, count, align_corners=True).windows[o]:
                got = Fraction(float(out[cell, 0, o]))
                below, above = (Fraction(float(np.nextafter(dtype(got), dtype(end)))) for end in (-INF, INF))
                assert abs(got - weight) <= min(abs(below - weight), abs(above - weight))


def test_bilinear_upsampling_is_of_two_axes(tape: Tape[Any]) -> None:
    with pytest.raises(ShapeError, match="expected sizes of the last 2 axes, got"):
        ops.upsample_bilinear(tape.leaf(np.ones((1, 2, 2, 2))), (2, 2, 2))


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 2, 3)])
def test_leading_axes_of_size_zero(tape: Tape[Any], shape: tuple[int, ...]) -> None:
    x = tape.leaf(np.zeros(shape))
    assert ops.upsample_nearest(x, (2, 1)).shape == (*shape[:-2], 4, 3)
    assert ops.upsample_bilinear(x, (4, 4)).shape == (*shape[:-2], 4, 4)


def test_no_leading_axes(tape: Tape[Any]) -> None:
    x = tape.leaf(np.array([[1.0, 3.0]]))
    assert ops.upsample_nearest(x, (1, 2)).numpy().tolist() == [[1, 1, 3, 3]]
    assert ops.upsample_bilinear(x, (1, 3), True).numpy().tolist() == [[1, 2, 3]]

"""Axes of another size: what stays to the bit, and positions of scales, by hand."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dgrr.tape import Tape, ops
from dgrr.tape.ops.pooling.kernels.weights import antialiased, cubic, linear, means

INF, NAN = np.inf, np.nan


def value(x: Any, *args: Any, **kwargs: Any) -> Any:
    return ops.interpolate(Tape().leaf(np.asarray(x)), *args, **kwargs).numpy()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_the_same_size_is_the_same_plane(mode: str) -> None:
    x = np.array([[1.5, INF], [NAN, -1e-310]])
    assert np.array_equal(value(x, (2, 2), mode=mode), x, equal_nan=True)


def test_the_bits_of_the_older_ops() -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 7)).astype(np.float32)
    leaf = Tape().leaf(x)
    assert value(x, (3, 11)).tobytes() == ops.upsample_nearest(leaf, size=(3, 11)).numpy().tobytes()
    for align in (False, True):
        older = ops.upsample_bilinear(leaf, (3, 11), align).numpy()
        assert value(x, (3, 11), mode="bilinear", align_corners=align).tobytes() == older.tobytes()


def test_a_scale_says_where_outputs_stand() -> None:
    x = np.arange(10.0)
    assert value(x, scale_factor=(0.7,)).tolist() == [0, 1, 2, 4, 5, 7, 8]
    assert value(x, (7,)).tolist() == [0, 1, 2, 4, 5, 7, 8]
    assert value(x[:4], scale_factor=(1.3,)).tolist() == [0, 0, 1, 2, 3]
    assert value(x[:4], (5,)).tolist() == [0, 0, 1, 2, 3]
    assert value(x[:4], scale_factor=(1.25,), mode="linear")[1] == 1.5 / 1.25 - 0.5
    assert value(np.arange(3.0), scale_factor=(0.1 * 3 / 0.3,)).shape == (3,)


@pytest.mark.parametrize("count", [1, 3, 8, 13])
def test_weights_of_every_output_add_up_to_one(count: int) -> None:
    axes = [linear(8, count, align_corners=False), cubic(8, count, align_corners=True), means(8, count)]
    axes += [antialiased(8, count, align_corners=False, is_cubic=is_cubic) for is_cubic in (False, True)]
    if count == 8:
        axes += [antialiased(8, 8, align_corners=False, step=Fraction(9, 10), is_cubic=True)]
    for axis in axes:
        assert [sum(weight for _, weight in window) for window in axis.windows] == [1] * count
        assert all(weight and 0 <= cell < 8 for window in axis.windows for cell, weight in window)
        assert all(sorted(dict(window)) == [cell for cell, _ in window] for window in axis.windows)


def test_the_gradient_of_a_cell_is_added_in_ascending_order() -> None:
    big = np.float32(2.0**24)
    for order, expected in (([1.0, big, -big], 0.0), ([big, -big, 1.0], 1.0)):
        tape: Tape[Any] = Tape()
        x = tape.leaf(np.full((1,), 5, np.float32))
        y = ops.interpolate(x, (3,), mode="linear")
        assert np.asarray(tape.backward_dense(y, np.array(order, np.float32))[x]).tolist() == [expected]

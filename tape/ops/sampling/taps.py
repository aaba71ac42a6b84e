"""Along one axis: the cells that a place reads, and their weights.

Places are floats, indices are computed in float64, in which they are whole numbers and exact.
"""

from typing import Any

import numpy as np

from ..elementwise import arithmetic, select
from ..elementwise.arithmetic import scale
from ..elementwise.clamp import absolute, clamp
from ..elementwise.select import cast

# Numbers beside a Var become constants, which the types of these do not say.
add: Any = arithmetic.add
sub: Any = arithmetic.sub
mul: Any = arithmetic.mul
div: Any = arithmetic.div
equal: Any = select.equal
greater: Any = select.greater

KEYS = -0.75
"""A of Keys' cubics."""


def _place(coordinate: Any, size: int, align_corners: bool) -> Any:
    """Where a coordinate from -1 to 1 stands among so many cells, the first at 0."""
    moved = add(coordinate, 1.0)
    return scale(moved, (size - 1) / 2) if align_corners else sub(scale(moved, size / 2), 0.5)


def _truncated(x: Any) -> Any:
    """The whole number towards zero, as a float without a gradient."""
    return cast(cast(x, "int64"), x.dtype)


def _floor(x: Any) -> Any:
    towards_zero = _truncated(x)
    return sub(towards_zero, cast(greater(towards_zero, x), x.dtype))


def _is_odd(x: Any) -> Any:
    """1 for odd whole numbers of at least 0, 0 for even ones."""
    return sub(x, scale(_truncated(scale(x, 0.5)), 2.0))


def _nearest(x: Any) -> Any:
    """The nearest whole number, the even one of two."""
    below = _floor(x)
    rest = sub(x, below)
    tie = mul(cast(equal(rest, 0.5), x.dtype), _is_odd(absolute(below)))
    return add(below, add(cast(greater(rest, 0.5), x.dtype), tie))


def _within(x: Any, size: int, padding_mode: str, align_corners: bool) -> Any:
    """Places outside brought to the border, or mirrored at it."""
    if padding_mode == "zeros":
        return x
    if padding_mode == "reflection":
        x = _reflected(x, 0.0 if align_corners else -0.5, size - 1 if align_corners else size)
    return clamp(x, 0.0, float(size - 1))


def _reflected(x: Any, low: float, span: int) -> Any:
    """Mirrored between ``low`` and ``low + span`` as often as it takes."""
    if span == 0:
        return scale(x, 0.0)
    distance = absolute(sub(x, low))
    turns = _truncated(div(distance, float(span)))
    rest, odd = sub(distance, scale(turns, float(span))), _is_odd(turns)
    return add(add(mul(rest, sub(1.0, scale(odd, 2.0))), scale(odd, float(span))), low)


def _cubic(t: Any) -> list[Any]:
    """Keys' cubics at the distances ``1 + t``, ``t``, ``1 - t`` and ``2 - t``."""

    def near(d: Any) -> Any:
        return add(mul(mul(sub(scale(d, KEYS + 2), KEYS + 3), d), d), 1.0)

    def far(d: Any) -> Any:
        return sub(mul(add(mul(sub(scale(d, KEYS), 5 * KEYS), d), 8 * KEYS), d), 4 * KEYS)

    return [far(add(t, 1.0)), near(t), near(sub(1.0, t)), far(sub(2.0, t))]


def taps(coordinate: Any, size: int, mode: str, padding_mode: str, align_corners: bool) -> tuple[list[Any], list[Any]]:
    """The cells along one axis that each place reads, as float64, and their weights."""
    x = _place(coordinate, size, align_corners)
    if mode == "bicubic":
        below = _floor(x)
        cells = [cast(add(below, float(i)), np.float64) for i in (-1, 0, 1, 2)]
        return [_within(cell, size, padding_mode, align_corners) for cell in cells], _cubic(sub(x, below))
    x = _within(x, size, padding_mode, align_corners)
    if mode == "nearest":
        return [cast(_nearest(x), np.float64)], [add(scale(x, 0.0), 1.0)]  # 1, and NaN for a place that is none
    below = _floor(x)
    share, first = sub(x, below), cast(below, np.float64)
    return [first, add(first, 1.0)], [sub(1.0, share), share]


def is_inside(cell: Any, size: int) -> Any:
    """1 for cells of an axis, else 0."""
    return cast(equal(clamp(cell, 0.0, float(size - 1)), cell), cell.dtype)

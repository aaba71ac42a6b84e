"""Planes read at places that a grid names, and the grids of affine maps; both are made of other ops.

Places are floats, indices are computed in float64, in which they are whole numbers and exact, and what lies outside a
plane has the index -1, for which `take_or_zero` gives 0.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Any, TypeVar

import numpy as np

from ...errors import DomainError, ShapeError
from ...numerics.math.exact import quotient
from ...numerics.sizes import Sizes
from ...record.composed import composed, fitted
from ...record.samples import Make, Sample, bad
from ...record.types import Bs, C, F, K, M, N
from ...var.var import Gradual, Var
from ..elementwise import arithmetic, select
from ..elementwise.arithmetic import mul, scale
from ..elementwise.clamp import absolute, clamp
from ..elementwise.select import cast
from ..indices.take_or_zero import take_or_zero
from ..linear.matmul import matmul
from ..pooling.rules import sizes_for
from ..reduce.reduce import broadcast_to, reduce_sum
from ..shape.joining import stack
from ..shape.reshape import permute, reshape, swap_last
from ..shape.slicing import getitem
from . import reference

H = TypeVar("H")
W = TypeVar("W")
Ho = TypeVar("Ho")
Wo = TypeVar("Wo")

# Numbers and arrays beside a Var become constants, which the types of these do not say.
add: Any = arithmetic.add
sub: Any = arithmetic.sub
div: Any = arithmetic.div
equal: Any = select.equal
greater: Any = select.greater

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
KEYS = -0.75
"""A of Keys' cubics."""


def _choose(argument: str, given: str, choices: Sequence[str]) -> None:
    if given not in choices:
        raise DomainError(f"grid_sample: argument {argument!r}: expected one of {', '.join(choices)}, got {given!r}")


def _place(coordinate: Any, size: int, align_corners: bool) -> Any:
    """Where a coordinate from -1 to 1 stands among so many cells, the first at 0."""
    moved = add(coordinate, 1.0)
    return scale(moved, (size - 1) / 2) if align_corners else sub(scale(moved, size / 2), 0.5)


def _whole(x: Any) -> Any:
    """The whole number towards zero, as a float without a gradient."""
    return cast(cast(x, "int64"), x.dtype)


def _floor(x: Any) -> Any:
    towards_zero = _whole(x)
    return sub(towards_zero, cast(greater(towards_zero, x), x.dtype))


def _is_odd(x: Any) -> Any:
    """1 for odd whole numbers of at least 0, 0 for even ones."""
    return sub(x, scale(_whole(scale(x, 0.5)), 2.0))


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
    turns = _whole(div(distance, float(span)))
    rest, odd = sub(distance, scale(turns, float(span))), _is_odd(turns)
    return add(add(mul(rest, sub(1.0, scale(odd, 2.0))), scale(odd, float(span))), low)


def _cubic(t: Any) -> list[Any]:
    """Keys' cubics at the distances ``1 + t``, ``t``, ``1 - t`` and ``2 - t``."""

    def near(d: Any) -> Any:
        return add(mul(mul(sub(scale(d, KEYS + 2), KEYS + 3), d), d), 1.0)

    def far(d: Any) -> Any:
        return sub(mul(add(mul(sub(scale(d, KEYS), 5 * KEYS), d), 8 * KEYS), d), 4 * KEYS)

    return [far(add(t, 1.0)), near(t), near(sub(1.0, t)), far(sub(2.0, t))]


def _taps(coordinate: Any, size: int, mode: str, padding_mode: str, align_corners: bool) -> tuple[list[Any], list[Any]]:
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


def _indices(rows: Sequence[Any], columns: Sequence[Any], height: int, width: int) -> Any:
    """The numbers of cells among those of all planes, (rows · columns, planes, …), or -1 for those outside."""
    shape = tuple(rows[0].shape)
    first = np.broadcast_to(np.arange(shape[0], dtype=np.float64)[:, None, None] * (height * width) + 1.0, shape)
    lines = [(add(scale(y, float(width)), first), _is_inside(y, height)) for y in rows]
    places = [(x, _is_inside(x, width)) for x in columns]
    found = [sub(mul(add(line, x), mul(is_in, x_in)), 1.0) for line, is_in in lines for x, x_in in places]
    return cast(stack(found), "int64")


def _is_inside(cell: Any, size: int) -> Any:
    """1 for cells of an axis, else 0."""
    return cast(equal(clamp(cell, 0.0, float(size - 1)), cell), cell.dtype)


def _samples(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, Sizes, dict[str, Any]], ...] = (
        ((2, 3, 4, 5), (2, 2, 3, 2), {}),
        ((1, 2, 3, 4), (1, 4, 2, 2), {"padding_mode": "border", "align_corners": True}),
        ((1, 2, 3, 4), (1, 4, 2, 2), {"padding_mode": "reflection"}),
        ((1, 2, 3, 1), (1, 3, 2, 2), {"padding_mode": "reflection", "align_corners": True}),
        ((1, 2, 4, 3), (1, 2, 3, 2), {"mode": "bicubic"}),
        ((1, 1, 4, 3), (1, 2, 2, 2), {"mode": "bicubic", "padding_mode": "reflection", "align_corners": True}),
        ((1, 2, 4, 3), (1, 3, 3, 2), {"mode": "nearest"}),
        ((0, 2, 2, 2), (0, 2, 2, 2), {}),
    )
    return [Sample((make(*x), make(*grid)), attrs) for x, grid, attrs in cases]


@composed(
    reference=reference.grid_sample,
    samples=_samples,
    errors=(
        bad(ShapeError, "grid_sample: argument 'x': expected shape (*Bs, C, H, W), got (3, 4)", (3, 4), (2, 2, 2)),
        bad(ShapeError, "argument 'grid': expected shape (2, Ho, Wo, N)", (2, 3, 4, 4), (3, 2, 2, 2)),
        bad(ShapeError, "argument 'grid': expected two coordinates along the last axis, got shape (1, 2, 2, 3)",
            (1, 3, 4, 4), (1, 2, 2, 3)),
        bad(ShapeError, "argument 'x': expected planes with cells, got shape (1, 3, 0, 4)", (1, 3, 0, 4), (1, 2, 2, 2)),
        bad(DomainError, "argument 'mode': expected one of bilinear, nearest, bicubic, got 'linear'", (1, 1, 2, 2),
            (1, 2, 2, 2), mode="linear"),
        bad(DomainError, "argument 'padding_mode': expected one of zeros, border, reflection, got 'same'",
            (1, 1, 2, 2), (1, 2, 2, 2), padding_mode="same"),
    ),
    batch_axis={"x": 0, "grid": 0},
)  # fmt: skip
def grid_sample(
    x: Var[F, *Bs, C, H, W],
    grid: Var[F, *Bs, Ho, Wo, N],
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Var[F, *Bs, C, Ho, Wo]:
    """Planes x read at the places of a grid of (column, row), from -1 at the first edge to 1 at the last.

    The edges are those of the outer cells, or with ``align_corners`` their centres. Between cells "bilinear" weighs
    the four around a place and "bicubic" sixteen, by Keys' cubics with A = -3/4; "nearest" takes one, the even one of
    two as near, and the grid's gradient is 0. Beyond the edges stand "zeros", the "border", or the plane mirrored, in
    "reflection". A cell's gradient adds what it was read for in ascending order of the four or sixteen, then of the
    places.

    Source: torch.nn.functional.grid_sample; Jaderberg et al. (2015), Spatial Transformer Networks.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[[1.0, 2.0], [3.0, 4.0]]])
    >>> ops.grid_sample(x, [[[0.0, 0.0], [0.5, -0.5]]]).numpy()
    array([[[2.5, 2. ]]])
    """
    x, grid = fitted("grid_sample", x, grid)
    _choose("mode", mode, MODES)
    _choose("padding_mode", padding_mode, PADDINGS)
    whole: Any = x
    *lead, channels, height, width = whole.shape
    shape = tuple(grid.shape)
    if shape[-1] != 2:
        raise ShapeError(
            f"grid_sample: argument 'grid': expected two coordinates along the last axis, got shape {shape}"
        )
    if not height * width:
        raise ShapeError(f"grid_sample: argument 'x': expected planes with cells, got shape {tuple(whole.shape)}")
    places = reshape(grid, (prod(lead), *shape[-3:]))
    columns, across = _taps(getitem(places, (..., 0)), width, mode, padding_mode, align_corners)
    rows, down = _taps(getitem(places, (..., 1)), height, mode, padding_mode, align_corners)
    cells = reshape(_channels_last(whole), (prod(lead) * height * width, channels))
    found = take_or_zero(cells, _indices(rows, columns, height, width))
    summed: Any = reduce_sum(mul(found, _spread([mul(v, h) for v in down for h in across], tuple(found.shape))), 0)
    out: Var[F, *Bs, C, Ho, Wo] = _channels_first(reshape(summed, (*lead, *shape[-3:-1], channels)))
    return out


def _spread(weights: Sequence[Any], shape: Sizes) -> Any:
    return broadcast_to(reshape(stack(weights), (*shape[:-1], 1)), shape)


def _channels_last(x: Any) -> Any:
    rank = len(x.shape)
    return permute(x, (*range(rank - 3), rank - 2, rank - 1, rank - 3))


def _channels_first(x: Any) -> Any:
    rank = len(x.shape)
    return permute(x, (*range(rank - 3), rank - 1, rank - 3, rank - 2))


def _coordinates(n: int, align_corners: bool) -> list[float]:
    """Of the centres of ``n`` cells between -1 and 1, or from one to the other."""
    if align_corners:
        return [quotient(2 * i - (n - 1), n - 1) if n > 1 else 0.0 for i in range(n)]
    return [float(Fraction(2 * i + 1 - n, n)) for i in range(n)]


@composed(
    reference=reference.affine_grid,
    samples=lambda make: [
        Sample((make(2, 2, 3),), {"size": (3, 4)}),
        Sample((make(1, 2, 3),), {"size": (1, 5), "align_corners": True}),
        Sample((make(0, 2, 3),), {"size": (2, 2)}),
    ],
    errors=(
        bad(ShapeError, "affine_grid: argument 'theta': expected shape (*Bs, 2, 3), got (3, 2)", (3, 2), size=(2, 2)),
        bad(ShapeError, "affine_grid: argument 'size': expected (height, width), got (2,)", (2, 3), size=(2,)),
        bad(ShapeError, "affine_grid: argument 'size': expected a size of at least 1", (2, 3), size=(2, 0)),
    ),
    batch_axis={"theta": 0},
)
def affine_grid(theta: Var[F, *Bs, M, K], size: tuple[int, ...], align_corners: bool = False) -> Gradual[F]:
    """The grid for `grid_sample` that reads each place of planes of ``size`` where ``theta`` maps it.

    ``theta`` is a matrix of two rows that is applied to (column, row, 1).

    Source: torch.nn.functional.affine_grid, whose ``size`` has the batch and the channels too.
    Shapes: theta (*Bs, 2, 3) -> (*Bs, *size, 2); ``size`` is (height, width)

    >>> from dgrr.tape import Tape, ops
    >>> ops.affine_grid(Tape().leaf([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]), (1, 2)).numpy()
    array([[[-0.5,  0.5],
            [ 0.5,  0.5]]])
    """
    (theta,) = fitted("affine_grid", theta)
    given: Any = theta
    if tuple(given.shape[-2:]) != (2, 3):
        raise ShapeError(f"affine_grid: argument 'theta': expected shape (*Bs, 2, 3), got {tuple(given.shape)}")
    if len(size) != 2:
        raise ShapeError(f"affine_grid: argument 'size': expected (height, width), got {size}")
    height, width = sizes_for("affine_grid", "size", size)
    across, down = _coordinates(width, align_corners), _coordinates(height, align_corners)
    base: Any = np.array([across * height, [y for y in down for _ in across], [1.0] * (height * width)], given.dtype)
    return reshape(swap_last(matmul(given, base)), (*given.shape[:-2], height, width, 2))

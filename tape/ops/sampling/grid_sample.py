"""Planes and volumes read at places that a grid names, made of other ops.

What lies outside has the index -1, for which `take_or_zero` gives 0.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np

from ...errors import ShapeError
from ...numerics.sizes import Sizes
from ...record.composed import composed, fitted
from ...record.kinds.values import one_of
from ...record.samples import Bad, Make, Sample, bad
from ...record.types import Bs, C, F, N
from ...var.var import Var
from ..elementwise.arithmetic import scale
from ..elementwise.select import cast
from ..indices.take_or_zero import take_or_zero
from ..reduce.reduce import broadcast_to, reduce_sum
from ..shape.joining import stack
from ..shape.reshape import permute, reshape
from ..shape.slicing import getitem
from . import reference
from .taps import add, is_inside, mul, sub, taps

D = TypeVar("D")
H = TypeVar("H")
W = TypeVar("W")
Do = TypeVar("Do")
Ho = TypeVar("Ho")
Wo = TypeVar("Wo")

PADDING = one_of("zeros", "border", "reflection")


def _sampled(name: str, x: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool, axes: int) -> Any:
    """``x`` read at the places of a grid, over its last axes; the weights of an axis are those of ``mode``."""
    *lead, channels = x.shape[:-axes]
    sizes, shape = tuple(x.shape[-axes:]), tuple(grid.shape)
    if shape[-1] != axes:
        count = {2: "two", 3: "three"}[axes]
        raise ShapeError(
            f"{name}: argument 'grid': expected {count} coordinates along the last axis, got shape {shape}"
        )
    if not prod(sizes):
        raise ShapeError(f"{name}: argument 'x': expected planes with cells, got shape {tuple(x.shape)}")
    places = reshape(grid, (prod(lead), *shape[-1 - axes :]))
    read = [
        taps(getitem(places, (..., axes - 1 - axis)), size, mode, padding_mode, align_corners)
        for axis, size in enumerate(sizes)
    ]
    cells = reshape(_channels_last(x, axes), (prod(lead) * prod(sizes), channels))
    found = take_or_zero(cells, _indices([cells for cells, _ in read], sizes))
    weights = _weights([weights for _, weights in read])
    summed: Any = reduce_sum(mul(found, _spread(weights, tuple(found.shape))), 0)
    return _channels_first(reshape(summed, (*lead, *shape[-1 - axes : -1], channels)), axes)


def _indices(axes: Sequence[Sequence[Any]], sizes: Sizes) -> Any:
    """The numbers of cells among those of all planes, (cells of a place, planes, …), or -1 for those outside."""
    shape, stride = tuple(axes[0][0].shape), prod(sizes)
    planes = np.arange(shape[0], dtype=np.float64).reshape(-1, *[1] * (len(shape) - 1))
    found: list[tuple[Any, Any]] = [(np.broadcast_to(planes * stride + 1.0, shape), None)]
    for cells, size in zip(axes, sizes, strict=True):
        stride //= size
        places = [(_times(cell, stride), is_inside(cell, size)) for cell in cells]
        found = [
            (add(place, number), is_in if before is None else mul(before, is_in))
            for number, before in found
            for place, is_in in places
        ]
    return cast(stack([sub(mul(number, is_in), 1.0) for number, is_in in found]), "int64")


def _times(cell: Any, stride: int) -> Any:
    if stride == 1:
        return cell
    return scale(cell, float(stride))


def _weights(axes: Sequence[Sequence[Any]]) -> list[Any]:
    """The products of the weights along each axis, the first axis first."""
    made = list(axes[0])
    for weights in axes[1:]:
        made = [mul(before, weight) for before in made for weight in weights]
    return made


def _spread(weights: Sequence[Any], shape: Sizes) -> Any:
    return broadcast_to(reshape(stack(weights), (*shape[:-1], 1)), shape)


def _channels_last(x: Any, axes: int) -> Any:
    rank = len(x.shape)
    return permute(x, (*range(rank - axes - 1), *range(rank - axes, rank), rank - axes - 1))


def _channels_first(x: Any, axes: int) -> Any:
    rank = len(x.shape)
    return permute(x, (*range(rank - axes - 1), rank - 1, *range(rank - axes - 1, rank - 1)))


def _refusals(name: str, x: Sizes, grid: Sizes, modes: str) -> tuple[Bad, ...]:
    """Bad samples of what both refuse."""
    return (
        bad(ShapeError, f"{name}: argument 'x': expected planes with cells", (*x[:2], 0, *x[3:]), grid),
        bad(ShapeError, "along the last axis, got shape", x, (*grid[:-1], 1)),
    )  # fmt: skip


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
        bad(ShapeError, "argument 'grid': expected two coordinates along the last axis, got shape (1, 2, 2, 3)",
            (1, 3, 4, 4), (1, 2, 2, 3)),
        bad(ShapeError, "argument 'x': expected planes with cells, got shape (1, 3, 0, 4)", (1, 3, 0, 4), (1, 2, 2, 2)),
    ),
    kinds={"mode": one_of("bilinear", "nearest", "bicubic"), "padding_mode": PADDING},
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
    out: Var[F, *Bs, C, Ho, Wo] = _sampled("grid_sample", x, grid, mode, padding_mode, align_corners, 2)
    return out


def _volumes(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, Sizes, dict[str, Any]], ...] = (
        ((2, 2, 3, 2, 4), (2, 2, 1, 3, 3), {}),
        ((1, 1, 2, 3, 2), (1, 2, 2, 2, 3), {"padding_mode": "reflection", "align_corners": True}),
        ((1, 2, 2, 1, 3), (1, 1, 3, 2, 3), {"padding_mode": "border", "mode": "nearest"}),
    )
    return [Sample((make(*x), make(*grid)), attrs) for x, grid, attrs in cases]


@composed(
    reference=reference.grid_sample3d,
    samples=_volumes,
    errors=(*_refusals("grid_sample3d", (1, 1, 2, 2, 2), (1, 2, 2, 2, 3), "trilinear, nearest"),),
    batch_axis={"x": 0, "grid": 0},
)
def grid_sample3d(
    x: Var[F, *Bs, C, D, H, W],
    grid: Var[F, *Bs, Do, Ho, Wo, N],
    mode: str = "trilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Var[F, *Bs, C, Do, Ho, Wo]:
    """Volumes x read at the places of a grid of (column, row, layer), as `grid_sample` reads planes.

    Between cells "trilinear" weighs the eight around a place; "nearest" takes one, and the grid's gradient is 0.

    Source: torch.nn.functional.grid_sample of five axes, which calls the first mode "bilinear".

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]])
    >>> ops.grid_sample3d(x, [[[[0.0, 0.0, 0.0], [0.5, -0.5, 0.0]]]]).numpy()
    array([[[[4.5, 4. ]]]])
    """
    x, grid = fitted("grid_sample3d", x, grid)
    out: Var[F, *Bs, C, Do, Ho, Wo] = _sampled("grid_sample3d", x, grid, mode, padding_mode, align_corners, 3)
    return out

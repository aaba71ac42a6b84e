"""The grids of affine maps."""

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...numerics.math.exact import quotient
from ...record.composed import composed, fitted
from ...record.samples import Sample, bad
from ...record.types import Bs, F, K, M
from ...var.var import Gradual, Var
from ..linear.matmul import matmul
from ..pooling.rules import sizes_for
from ..shape.reshape import reshape, swap_last
from . import reference


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
        Sample((make(2, 3, 4),), {"size": (2, 1, 3)}),
    ],
    errors=(
        bad(ShapeError, "affine_grid: argument 'theta': expected shape (*Bs, 2, 3), got (3, 2)", (3, 2), size=(2, 2)),
        bad(ShapeError, "argument 'theta': expected shape (*Bs, 3, 4), got (2, 3)", (2, 3), size=(2, 2, 2)),
        bad(ShapeError, "'size': expected (height, width) or (depth, height, width), got (2,)", (2, 3), size=(2,)),
        bad(ShapeError, "affine_grid: argument 'size': expected a size of at least 1", (2, 3), size=(2, 0)),
    ),
    batch_axis={"theta": 0},
)
def affine_grid(theta: Var[F, *Bs, M, K], size: tuple[int, ...], align_corners: bool = False) -> Gradual[F]:
    """The grid for `grid_sample` that reads each place of planes of ``size`` where ``theta`` maps it.

    ``theta`` is a matrix of two rows that is applied to (column, row, 1). With a third size, for `grid_sample3d`, it
    has three rows.

    Source: torch.nn.functional.affine_grid, whose ``size`` has the batch and the channels too.
    Shapes: theta (*Bs, n, n + 1) -> (*Bs, *size, n); ``size`` is (height, width) or (depth, height, width)

    >>> from dgrr.tape import Tape, ops
    >>> ops.affine_grid(Tape().leaf([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]), (1, 2)).numpy()
    array([[[-0.5,  0.5],
            [ 0.5,  0.5]]])
    """
    (theta,) = fitted("affine_grid", theta)
    given: Any = theta
    n = len(size)
    if n not in (2, 3):
        raise ShapeError(
            f"affine_grid: argument 'size': expected (height, width) or (depth, height, width), got {size}"
        )
    if tuple(given.shape[-2:]) != (n, n + 1):
        raise ShapeError(f"affine_grid: argument 'theta': expected shape (*Bs, {n}, {n + 1}), got {tuple(given.shape)}")
    sizes = sizes_for("affine_grid", "size", size)
    places = list(product(*[_coordinates(m, align_corners) for m in sizes]))
    base: Any = np.array([*[[place[axis] for place in places] for axis in reversed(range(n))], [1.0] * prod(sizes)])
    mapped: Any = matmul(given, base.astype(given.dtype))
    return reshape(swap_last(mapped), (*given.shape[:-2], *sizes, n))

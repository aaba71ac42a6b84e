"""Parts of matrices: triangles and diagonals; and the matrix of all products of two vectors."""

# References are numpy's own functions, whose arguments say little of types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import ShapeError
from ...numerics.math.reference import sums as reference_sums
from ...numerics.sizes import Sizes
from ...record.composed import composed, fitted
from ...record.kinds.values import AXIS
from ...record.samples import Make, Sample, bad
from ...record.types import Bs, D, F, M, N
from ...values.shape import normal_axis
from ...var.var import Gradual, Var
from ..elementwise.arithmetic import mul
from ..elementwise.select import where
from ..reduce.reduce import broadcast_to, reduce_sum
from ..shape.reshape import permute, reshape
from ..shape.slicing import getitem


def _below(x: Any, diagonal: int) -> Any:
    """For each element of matrices whether it stands on a diagonal or below it."""
    rows, columns = x.shape[-2:]
    inside = max(-rows, min(diagonal, columns))  # numpy takes no number beyond 64 bits
    return np.broadcast_to(np.tri(rows, columns, inside, bool), tuple(x.shape))


def _where(mask: Any, x: Any) -> Any:
    zero: Any = 0  # of whichever type x has
    return where(mask, x, zero)


def _parts(make: Make) -> list[Sample]:
    special = np.array([[1.0, np.nan], [np.inf, -0.0]], make.dtype)
    return [
        Sample((make(3, 3),)),
        Sample((make(2, 3, 5),), {"diagonal": 1}),
        Sample((make(2, 5, 3),), {"diagonal": -2}),
        Sample((special,), {"diagonal": -1}),
        Sample((make(2, 3),), {"diagonal": 9}),
        Sample((make(0, 3),)),
        Sample((make.indices(9, 3, 4),), {"diagonal": 1}),
        Sample((make.mask(4, 3),)),
    ]


@composed(
    reference=lambda x, diagonal=0: np.tril(x, diagonal),
    samples=_parts,
    batch_axis={"x": -3},
)
def tril(x: Var[D, *Bs, M, N], diagonal: int = 0) -> Var[D, *Bs, M, N]:
    """The lower triangle of each matrix: 0 above a diagonal, which lies so many columns to the right of the main one.

    Source: numpy.tril, whose ``k`` is ``diagonal``; torch.tril.

    >>> from dgrr.tape import Tape, ops
    >>> ops.tril(Tape().leaf([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([[1., 0.],
           [3., 4.]])
    """
    (x,) = fitted("tril", x)
    made: Var[D, *Bs, M, N] = _where(_below(x, diagonal), x)
    return made


@composed(
    reference=lambda x, diagonal=0: np.triu(x, diagonal),
    samples=_parts,
    batch_axis={"x": -3},
)
def triu(x: Var[D, *Bs, M, N], diagonal: int = 0) -> Var[D, *Bs, M, N]:
    """The upper triangle of each matrix: 0 below a diagonal, which lies so many columns to the right of the main one.

    Source: numpy.triu, whose ``k`` is ``diagonal``; torch.triu.

    >>> from dgrr.tape import Tape, ops
    >>> ops.triu(Tape().leaf([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([[1., 2.],
           [0., 4.]])
    """
    (x,) = fitted("triu", x)
    made: Var[D, *Bs, M, N] = _where(~_below(x, diagonal - 1), x)
    return made


def _plane(name: str, shape: Sizes, axis1: int, axis2: int) -> Sizes:
    """The axes in an order in which the two given are the last."""
    a, b = (normal_axis(name, axis, len(shape), argument) for argument, axis in (("axis1", axis1), ("axis2", axis2)))
    if a == b:
        raise ShapeError(f"{name}: argument 'axis2': expected another axis than 'axis1', got {axis2} beside {axis1}")
    return (*(i for i in range(len(shape)) if i not in (a, b)), a, b)


def _diagonal(x: Any, order: Sizes, offset: int) -> Any:
    """Every (n + 1)-th element of rows of n, side by side."""
    moved = x if order == tuple(range(len(order))) else permute(x, order)
    *leading, rows, columns = moved.shape
    start = offset if offset >= 0 else -offset * columns
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    stop = start + (count - 1) * (columns + 1) + 1 if count else start
    return getitem(reshape(moved, (*leading, rows * columns)), (..., slice(start, stop, columns + 1)))


def _diagonals(make: Make) -> list[Sample]:
    return [
        Sample((make(3, 3),)),
        Sample((make(3, 5),), {"offset": 1}),
        Sample((make(4, 2, 3),), {"offset": -2, "axis1": 0, "axis2": 2}),
        Sample((make(2, 3, 4),), {"offset": 1, "axis1": -1, "axis2": 1}),
        Sample((make(2, 3),), {"offset": 3}),
        Sample((make(0, 3),), {"offset": -1}),
    ]


AXES = {"axis1": AXIS, "axis2": AXIS}


def _refused_axes(name: str) -> tuple[Any, ...]:
    text = f"{name}: argument 'axis2': expected"
    return (bad(ShapeError, f"{text} another axis than 'axis1', got -2 beside 0", (2, 3), axis2=-2),)


PLACES = {"batch": "which axes are joined depends on attributes"}


@composed(reference=np.diagonal, samples=_diagonals, errors=_refused_axes("diagonal"), kinds=AXES, excused=PLACES)
def diagonal(x: Gradual[D], offset: int = 0, axis1: int = 0, axis2: int = 1) -> Gradual[D]:
    """The elements whose indices along two axes are ``i`` and ``i + offset``, along a new last axis.

    Source: numpy.diagonal, torch.diagonal.
    Shapes: x (...) -> (...); without the two axes, and with that of the diagonal at the end

    >>> from dgrr.tape import Tape, ops
    >>> ops.diagonal(Tape().leaf([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([1., 4.])
    """
    (x,) = fitted("diagonal", x)
    made: Gradual[D] = _diagonal(x, _plane("diagonal", tuple(x.shape), axis1, axis2), offset)
    return made


def _reference_trace(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    return reference_sums.reduce_sum(np.diagonal(x, offset, axis1, axis2), -1)


@composed(reference=_reference_trace, samples=_diagonals, errors=_refused_axes("trace"), kinds=AXES, excused=PLACES)
def trace(x: Gradual[F], offset: int = 0, axis1: int = 0, axis2: int = 1) -> Gradual[F]:
    """The sum of a `diagonal`, in the order of `reduce_sum`.

    Source: numpy.trace.
    Shapes: x (...) -> (...); without the two axes

    >>> from dgrr.tape import Tape, ops
    >>> ops.trace(Tape().leaf([[1.0, 2.0], [3.0, 4.0]])).item()
    5.0
    """
    (x,) = fitted("trace", x)
    order = _plane("trace", tuple(x.shape), axis1, axis2)
    return reduce_sum(_diagonal(x, order, offset), (-1,))


@composed(
    reference=np.multiply.outer,
    samples=lambda make: [
        Sample((make(3), make(4))),
        Sample((make(1), make(0))),
        Sample((np.array([-0.0, np.inf, 1], make.dtype), np.array([1, 0, np.nan], make.dtype))),
    ],
    batch_axis={"a": 0},
)
def outer(a: Var[F, M], b: Var[F, N]) -> Var[F, M, N]:
    """The product of each element of one vector and each of another.

    Source: numpy.outer, torch.outer.

    >>> from dgrr.tape import Tape, ops
    >>> ops.outer(Tape().leaf([1.0, 2.0]), [3.0, 4.0]).numpy()
    array([[3., 4.],
           [6., 8.]])
    """
    a, b = fitted("outer", a, b)
    (m,), (n,) = a.shape, b.shape
    made: Var[F, M, N] = mul(broadcast_to(reshape(a, (m, 1)), (m, n)), broadcast_to(b, (m, n)))
    return made

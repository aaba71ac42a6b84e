"""Ops that give the same elements another shape or order. None moves an element."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import prod
from typing import Any, overload

import numpy as np

from ...errors import DTypeError, ShapeError
from ...numerics.sizes import Sizes
from ...record.kinds.values import AXIS
from ...record.lowering import permuted, reshaped
from ...record.op_decorator import op
from ...record.samples import Sample, bad
from ...record.types import D, M, N, S, like
from ...values.shape import Pattern, Shape, normal_axis
from ...values.spec import Spec
from ...var.var import Gradual, Var


def solved(x: Spec, given: int | Sizes) -> Sizes:
    """The shape given, with a -1 replaced by the size that keeps the number of elements. Raises ShapeError."""
    shape = (given,) if isinstance(given, int) else given
    known = prod(s for s in shape if s != -1)
    free = shape.count(-1)
    if free == 1 and known and x.size % known == 0:
        shape = tuple(x.size // known if s == -1 else s for s in shape)
    if any(s < 0 for s in shape) or prod(shape) != x.size:
        raise ShapeError(
            f"reshape: argument 'shape': expected {x.size} elements as in {x.shape}, got {shape}; "
            "one size may be -1 if the others divide the number of elements"
        )
    return shape


@overload
def reshape(x: Gradual[D], shape: type[Shape[*S]]) -> Var[D, *S]: ...
@overload
def reshape(x: Gradual[D], shape: int | Sizes) -> Gradual[D]: ...
@op(
    infer=lambda x, shape: like(x, solved(x, shape)),
    lower=lambda x, shape: reshaped(x, solved(x.spec, shape)),
    vjp=(lambda g, x_shape: reshape(g, x_shape),),
    jvp=lambda dx, shape: reshape(dx, shape),
    reference=lambda x, shape: x.reshape(shape),
    samples=lambda make: [
        Sample((make(2, 6),), {"shape": (3, -1)}),
        Sample((make(4, 3).T,), {"shape": (12,)}),
        Sample((make(),), {"shape": (1, 1)}),
        Sample((make(0, 3),), {"shape": (3, 0)}),
    ],
    errors=(
        bad(ShapeError, "argument 'shape': expected 6 elements as in (2, 3), got (4, 2)", (2, 3), shape=(4, 2)),
        bad(ShapeError, "argument 'shape': expected 6 elements", (2, 3), shape=(-1, 4)),
        bad(ShapeError, "argument 'shape': expected 6 elements", (2, 3), shape=(-1, -1)),
        bad(DTypeError, "a tuple of whole numbers or Shape[...], got ('a', 6)", (2, 3), shape=("a", 6)),
    ),
    covers=("reshape",),
    excused={"batch": "the attribute names the batch's size"},
    named=("shape", Pattern.solved),
)
def reshape(x: Gradual[D], shape: int | Sizes | type[Shape[*S]]) -> Gradual[D]:
    """The same elements in row-major order under another shape; one size may be -1, one Dim of a ``Shape[...]`` new.

    Source: numpy.reshape in row-major order.
    Shapes: x (...) -> shape; both have the same number of elements

    >>> from dgrr.tape import Tape, ops
    >>> ops.reshape(Tape().leaf([1.0, 2.0, 3.0, 4.0]), (2, -1)).numpy()
    array([[1., 2.],
           [3., 4.]])
    """
    ...


def _flat(x: Spec, start_axis: int) -> Sizes:
    start = normal_axis("flatten", start_axis, max(x.rank, 1), "start_axis")
    return (*x.shape[:start], prod(x.shape[start:]))


@overload
def flatten(x: Gradual[D], start_axis: type[Shape[*S]]) -> Var[D, *S]: ...
@overload
def flatten(x: Gradual[D], start_axis: int = 0) -> Gradual[D]: ...
@op(
    infer=lambda x, start_axis: like(x, _flat(x, start_axis)),
    lower=lambda x, start_axis: reshaped(x, _flat(x.spec, start_axis)),
    vjp=(lambda g, x_shape: reshape(g, x_shape),),
    jvp=lambda dx, start_axis: flatten(dx, start_axis),
    reference=lambda x, start_axis=0: x.reshape((*x.shape[:start_axis], -1 if x.size else 0)),
    samples=lambda make: [
        Sample((make(),)),
        Sample((make(3, 2).T,)),
        Sample((make(2, 3, 4),), {"start_axis": 1}),
        Sample((make(0, 3),)),
    ],
    errors=(
        bad(ShapeError, "flatten: argument 'start_axis': expected an axis from -2 to 1, got 2", (2, 3), start_axis=2),
    ),
    covers=("flatten",),
    excused={"batch": "without start_axis the batch is joined with the other axes"},
    named=("start_axis", lambda pattern, where, known: len(pattern.solved(where, known)) - 1),
)
def flatten(x: Gradual[D], start_axis: int | type[Shape[*S]] = 0) -> Gradual[D]:
    """The axes from ``start_axis`` on joined into one; a scalar becomes a vector of one.

    Given as ``Shape[...]`` it names the result, whose last axis is the joined one.

    Source: torch.flatten, whose ``start_dim`` is ``start_axis``.
    Shapes: x (*Bs, *S) -> (*Bs, n); the axes of Bs stand before ``start_axis``, and n is the number of elements of S

    >>> from dgrr.tape import Tape, ops
    >>> ops.flatten(Tape().leaf(np.zeros((2, 3, 4))), 1).shape
    (2, 12)
    """
    ...


@op(
    lower=lambda x: permuted(x, (1, 0)),
    along=(lambda d: transpose2d(d),),
    reference=lambda x: x.T,
    samples=lambda make: [Sample((make(2, 3),)), Sample((make(0, 3),)), Sample((make(4, 5).T,))],
    covers=("transpose2d",),
    excused={"batch": "its axes change places"},
)
def transpose2d(x: Var[D, M, N]) -> Var[D, N, M]:
    """The transpose of a matrix.

    Source: numpy.transpose of a matrix.

    >>> from dgrr.tape import Tape, ops
    >>> ops.transpose2d(Tape().leaf([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([[1., 3.],
           [2., 4.]])
    """
    ...


def _axes(x: Spec, axes: Sizes) -> Sizes:
    normal = tuple(normal_axis("permute", a, x.rank, "axes") for a in axes)
    if sorted(normal) != list(range(x.rank)):
        raise ShapeError(f"permute: argument 'axes': expected each of {x.rank} axes once, got {axes}")
    return normal


def _inverse(axes: Sizes) -> Sizes:
    rank = len(axes)
    return tuple(int(i) for i in np.argsort([a % rank for a in axes]))


@op(
    infer=lambda x, axes: like(x, tuple(x.shape[a] for a in _axes(x, axes))),
    lower=lambda x, axes: permuted(x, _axes(x.spec, axes)),
    vjp=(lambda g, axes: permute(g, _inverse(axes)),),
    jvp=lambda dx, axes: permute(dx, axes),
    reference=np.transpose,
    samples=lambda make: [
        Sample((make(2, 3, 4),), {"axes": (2, 0, 1)}),
        Sample((make(2, 3, 4, 5),), {"axes": (0, -1, 1, 2)}),
        Sample((make(),), {"axes": ()}),
        Sample((make(2, 3, 4),), {"axes": (1, 2, 0)}),
        Sample((make(2, 3, 4),), {"axes": (0, 2, 1)}),
    ],
    errors=(
        bad(
            ShapeError,
            "permute: argument 'axes': expected each of 2 axes once, got (0, 0)",
            (2, 3),
            axes=(0, 0),
        ),
        bad(ShapeError, "permute: argument 'axes': expected an axis from -2 to 1, got 2", (2, 3), axes=(0, 2)),
    ),
    covers=("transpose3d_first_to_last", "transpose3d_last_to_first", "transpose3d_last_two"),
    excused={"batch": "its axes change places"},
)
def permute(x: Gradual[D], axes: Sizes) -> Gradual[D]:
    """``x`` with its axes in the order ``axes``; each may count from the end.

    Source: numpy.transpose with ``axes``.
    Shapes: x (...) -> (...); axis i of the result has the size of axis ``axes[i]`` of x

    >>> from dgrr.tape import Tape, ops
    >>> ops.permute(Tape().leaf(np.zeros((2, 3, 4))), (2, 0, 1)).shape
    (4, 2, 3)
    """
    ...


def _swapped(x: Spec, axis1: int, axis2: int) -> Sizes:
    """The order of axes with two of them exchanged."""
    a, b = (normal_axis("swapaxes", axis, x.rank, name) for name, axis in (("axis1", axis1), ("axis2", axis2)))
    return tuple(b if axis == a else a if axis == b else axis for axis in range(x.rank))


@op(
    infer=lambda x, axis1, axis2: like(x, tuple(x.shape[a] for a in _swapped(x, axis1, axis2))),
    lower=lambda x, axis1, axis2: permuted(x, _swapped(x.spec, axis1, axis2)),
    along=(lambda d, axis1, axis2: swapaxes(d, axis1, axis2),),
    reference=np.swapaxes,
    samples=lambda make: [
        Sample((make(2, 3, 4),), {"axis1": 0, "axis2": 1}),
        Sample((make(2, 3, 4, 5),), {"axis1": -1, "axis2": 1}),
        Sample((make(0, 3),), {"axis1": 1, "axis2": 1}),
    ],
    covers=("swap_adjacent_at_depth",),
    excused={"batch": "its axes change places"},
    kinds={"axis1": AXIS, "axis2": AXIS},
)
def swapaxes(x: Gradual[D], axis1: int, axis2: int) -> Gradual[D]:
    """``x`` with two axes exchanged; each may count from the end.

    Source: numpy.swapaxes.
    Shapes: x (...) -> (...); the sizes of ``axis1`` and ``axis2`` are exchanged

    >>> from dgrr.tape import Tape, ops
    >>> ops.swapaxes(Tape().leaf(np.zeros((2, 3, 4))), 0, -1).shape
    (4, 3, 2)
    """
    ...


def swap_last(x: Any) -> Any:
    """The last two axes exchanged."""
    rank = len(x.shape)
    return permute(x, (*range(rank - 2), rank - 1, rank - 2))

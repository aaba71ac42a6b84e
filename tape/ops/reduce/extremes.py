"""The largest and the smallest along axes, where they stand, and the adjoint pair behind their gradients."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...errors import BoundsError, ShapeError
from ...numerics.engine.kernel import Kernel
from ...numerics.sizes import Sizes
from ...record.derivative import NO_GRAD
from ...record.kinds.values import AXES, at_least
from ...record.lowering import Slot, call
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import Axis, F, like
from ...values.dtypes import i64
from ...values.shape import normal_axes
from ...values.spec import Spec
from ...var.method_types import typed_as
from ...var.var import Gradual, position, reduction
from ..shape.reshape import reshape
from .kernels import extremes as kernels
from .reference import reductions as reference
from .rows import from_rows, infer_rows, lower_rows, row_samples, to_rows, without

INT64 = i64.dtype
REDUCED = {"batch": "by default the batch is reduced"}
WORK = 3
"""Operations for each element."""


def _infer(name: str, x: Spec, axis: Axis, keepdims: bool) -> Spec:
    return infer_rows(name, x, axis, keepdims, empty=False)


def _infer_position(name: str, x: Spec, axis: Axis, keepdims: bool) -> Spec:
    return Spec(_infer(name, x, axis, keepdims).shape, INT64)


def _lower(name: str, rows: Kernel, columns: Kernel, x: Slot, axis: Axis, keepdims: bool) -> Slot:
    return lower_rows(name, rows, x, axis, keepdims, WORK, columns=columns)


def _lower_position(name: str, kernel: Kernel, x: Slot, axis: Axis, keepdims: bool) -> Slot:
    return lower_rows(name, kernel, x, axis, keepdims, WORK, INT64)


def _placed(g: Any, position: Any, x_shape: Sizes, axis: Axis) -> Any:
    """Zeros of the shape of x with ``g`` at the positions along the axes reduced."""
    n = prod(x_shape[a] for a in normal_axes("reduce_max", axis, len(x_shape)))
    return from_rows(spread(reshape(g, without(x_shape, axis)), position, n), x_shape, axis)


def _found(dx: Any, position: Any, y: Any, axis: Axis) -> Any:
    """The elements of ``dx`` at the positions, in the shape of the result."""
    return reshape(pick(to_rows(dx, axis), position), tuple(y.shape))


def _extremes(make: Make) -> list[Sample]:
    zeros = np.array([[-0.0, 0.0, -0.0], [0.0, -0.0, 0.0], [-0.0, -0.0, -0.0], [-1.0, -0.0, 1.0]], make.dtype)
    others = np.array([[1.0, np.nan, 5.0], [np.nan, np.nan, 1.0], [np.inf, 2.0, np.inf], [2.0, 3.0, 3.0]], make.dtype)
    infinite = np.array([[np.inf, -np.inf], [-np.inf, -np.inf]], make.dtype)
    given = [Sample((x,), {"axis": -1}) for x in (zeros, -zeros, others, -others, infinite)]
    given += [Sample((x.T,), {"axis": 0}) for x in (zeros, -zeros, others, -others)]
    ties = make.indices(4, 3, 40).astype(make.dtype)
    return row_samples(make, *given, Sample((ties,), {"axis": 1}), Sample((ties,), {"axis": 0}))


def _errors(name: str) -> tuple[Any, ...]:
    none = f"{name}: argument 'x': expected elements along axis 0, got shape (0, 3)"
    return (bad(ShapeError, none, (0, 3), axis=0),)


@typed_as(position)
@op(
    infer=partial(_infer_position, "argmax"),
    lower=partial(_lower_position, "argmax", kernels.argmax_rows),
    along=NO_GRAD,
    reference=reference.argmax,
    samples=_extremes,
    errors=_errors("argmax"),
    kinds={"axis": AXES},
    excused=REDUCED,
)
def argmax(x: Gradual[F], axis: Axis = None, keepdims: bool = False) -> Gradual[i64]:
    """The position of the largest element along an axis, several, or all, in row-major order; the first of equal ones.

    NaN is the largest, and -0 < +0.

    Source: numpy.argmax.
    Shapes: x (...) -> (...); without the axes that are reduced, or with 1 for each if ``keepdims``

    >>> from dgrr.tape import Tape, ops
    >>> ops.argmax(Tape().leaf([[1.0, 3.0], [4.0, 2.0]]), 1).numpy()
    array([1, 0])
    """
    ...


@typed_as(position)
@op(
    infer=partial(_infer_position, "argmin"),
    lower=partial(_lower_position, "argmin", kernels.argmin_rows),
    along=NO_GRAD,
    reference=reference.argmin,
    samples=_extremes,
    errors=_errors("argmin"),
    kinds={"axis": AXES},
    excused=REDUCED,
)
def argmin(x: Gradual[F], axis: Axis = None, keepdims: bool = False) -> Gradual[i64]:
    """The position of the smallest element along an axis, several, or all, in row-major order; the first of equal ones.

    A NaN comes before all others, and -0 < +0.

    Source: numpy.argmin.
    Shapes: x (...) -> (...); without the axes that are reduced, or with 1 for each if ``keepdims``

    >>> from dgrr.tape import Tape, ops
    >>> ops.argmin(Tape().leaf([[1.0, 3.0], [4.0, 2.0]]), 1).numpy()
    array([0, 1])
    """
    ...


@typed_as(reduction)
@op(
    infer=partial(_infer, "reduce_max"),
    lower=partial(_lower, "reduce_max", kernels.max_rows, kernels.max_columns),
    vjp=(lambda g, x, x_shape, axis: _placed(g, argmax(x, axis), x_shape, axis),),
    jvp=lambda dx, x, y, axis: _found(dx, argmax(x, axis), y, axis),
    reference=reference.reduce_max,
    samples=_extremes,
    errors=_errors("reduce_max"),
    kinds={"axis": AXES},
    excused=REDUCED,
)
def reduce_max(x: Gradual[F], axis: Axis = None, keepdims: bool = False) -> Gradual[F]:
    """The largest element along an axis, several, or all; the gradient goes to the first of equal ones.

    NaN wins, and -0 < +0.

    Source: numpy.max.
    Shapes: x (...) -> (...); without the axes that are reduced, or with 1 for each if ``keepdims``

    >>> from dgrr.tape import Tape, ops
    >>> ops.reduce_max(Tape().leaf([[1.0, 3.0], [4.0, 2.0]]), 1).numpy()
    array([3., 4.])
    """
    ...


@typed_as(reduction)
@op(
    infer=partial(_infer, "reduce_min"),
    lower=partial(_lower, "reduce_min", kernels.min_rows, kernels.min_columns),
    vjp=(lambda g, x, x_shape, axis: _placed(g, argmin(x, axis), x_shape, axis),),
    jvp=lambda dx, x, y, axis: _found(dx, argmin(x, axis), y, axis),
    reference=reference.reduce_min,
    samples=_extremes,
    errors=_errors("reduce_min"),
    kinds={"axis": AXES},
    excused=REDUCED,
)
def reduce_min(x: Gradual[F], axis: Axis = None, keepdims: bool = False) -> Gradual[F]:
    """The smallest element along an axis, several, or all; the gradient goes to the first of equal ones.

    NaN wins, and -0 < +0.

    Source: numpy.min.
    Shapes: x (...) -> (...); without the axes that are reduced, or with 1 for each if ``keepdims``

    >>> from dgrr.tape import Tape, ops
    >>> ops.reduce_min(Tape().leaf([[1.0, 3.0], [4.0, 2.0]]), 1).numpy()
    array([1., 2.])
    """
    ...


REFUSAL = "{op}: argument 'indices': expected 0 to {high}, got {{value}} at position {{position}}"


def _infer_pick(x: Spec, indices: Spec) -> Spec:
    if not x.rank or x.shape[:-1] != indices.shape:
        raise ShapeError(f"pick: argument 'indices': expected shape {x.shape[:-1]}, got {indices.shape}")
    return like(x, indices.shape)


def _lower_pick(x: Slot, indices: Slot) -> Slot:
    refusal = REFUSAL.format(op="pick", high=x.shape[-1] - 1)
    return call(kernels.pick, [x, indices], indices.shape, indices.spec.size, x.shape[-1], refusal=refusal)


@op(
    infer=_infer_pick,
    lower=_lower_pick,
    vjp=(lambda g, indices, x_shape: spread(g, indices, x_shape[-1]), NO_GRAD),
    jvp=lambda dx, indices: pick(dx, indices),
    reference=lambda x, indices: np.take_along_axis(x, indices[..., None], -1)[..., 0],
    samples=lambda make: [
        Sample((make(2, 3, 5), make.indices(5, 2, 3))),
        Sample((make(1, 4), np.array([3]))),
        Sample((make(0, 2), np.zeros(0, np.int64))),
    ],
    errors=(
        bad(BoundsError, "pick: argument 'indices': expected 0 to 2, got 3 at position 1", (2, 3), np.array([0, 3])),
        bad(BoundsError, "got -1 at position 0", (2, 3), np.array([-1, 0])),
        bad(ShapeError, "pick: argument 'indices': expected shape (2,), got (3,)", (2, 3), np.array([0, 0, 0])),
    ),
    batch_axis={"x": 0, "indices": 0},
    private=True,
)
def pick(x: Gradual[F], indices: Gradual[i64]) -> Gradual[F]:
    """Of each vector along the last axis the element at its index."""
    ...


def _infer_spread(g: Spec, indices: Spec, n: int) -> Spec:
    if g.shape != indices.shape:
        raise ShapeError(f"spread: argument 'indices': expected shape {g.shape}, got {indices.shape}")
    return like(g, (*g.shape, n))


def _lower_spread(g: Slot, indices: Slot, n: int) -> Slot:
    refusal = REFUSAL.format(op="spread", high=n - 1)
    return call(kernels.spread, [g, indices], (*g.shape, n), g.spec.size, n, refusal=refusal)


def _spread_jvp(dg: Any, indices: Any, n: int) -> Any:
    return spread(dg, indices, n)


def _reference_spread(g: Any, indices: Any, n: int) -> Any:
    out = np.zeros((*g.shape, n), g.dtype)
    np.put_along_axis(out, indices[..., None], g[..., None], -1)
    return out


@op(
    infer=_infer_spread,
    lower=_lower_spread,
    vjp=(lambda g, indices: pick(g, indices), NO_GRAD),
    jvp=_spread_jvp,
    reference=_reference_spread,
    samples=lambda make: [
        Sample((make(2, 3), make.indices(5, 2, 3)), {"n": 5}),
        Sample((make(), np.array(0)), {"n": 1}),
        Sample((make(0), np.zeros(0, np.int64)), {"n": 2}),
    ],
    errors=(
        bad(BoundsError, "spread: argument 'indices': expected 0 to 2, got 3", (2,), np.array([0, 3]), n=3),
        bad(ShapeError, "spread: argument 'indices': expected shape (2,), got (1,)", (2,), np.array([0]), n=3),
    ),
    kinds={"n": at_least(0)},
    batch_axis={"g": 0, "indices": 0},
    private=True,
)
def spread(g: Gradual[F], indices: Gradual[i64], n: int) -> Gradual[F]:
    """Zeros with a last axis of ``n`` and each element of ``g`` at its index along it: the gradient of pick."""
    ...

"""Repeating and summing: broadcast_to and the reductions, each the other's adjoint."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from functools import partial
from math import prod
from typing import Any, overload

import numpy as np

from ....base.arrays import Array
from ...errors import ShapeError
from ...numerics.math.reference import sums as reference_sums
from ...numerics.simd import sums
from ...numerics.sizes import Sizes
from ...record.kinds.values import AXES
from ...record.lowering import Slot, call, permuted, view
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import Axis, D, F, S, like
from ...values.shape import Bindings, Pattern, Shape, can_broadcast, normal_axes
from ...values.spec import Spec
from ...var.method_types import typed_as
from ...var.var import Gradual, Var, reduction
from ..elementwise.arithmetic import divide
from ..shape.reshape import reshape


def _infer_broadcast(x: Spec, shape: Sizes) -> Spec:
    if any(s < 0 for s in shape) or not can_broadcast(x.shape, shape):
        raise ShapeError(
            f"broadcast_to: argument 'shape': expected a shape that {x.shape} can be repeated to, got {shape}; "
            "sizes must be equal or 1, counted from the last axis"
        )
    return like(x, shape)


def _known_sizes(pattern: Pattern, where: str, known: Bindings) -> Sizes:
    sizes = pattern.solved(where, known)
    if -1 in sizes:
        raise ShapeError(f"{where}: expected axes whose sizes are known on this tape, got {pattern.render(known)}")
    return sizes


def _lower_broadcast(x: Slot, shape: Sizes) -> Slot:
    strides, dtype = _repeated_strides(x, shape), x.dtype

    def repeated(array: Array) -> Array:
        if strides and array.flags.c_contiguous:  # what numpy's function makes, in a tenth of the time
            return np.ndarray(shape, dtype, array, 0, strides)
        return np.broadcast_to(array, shape)

    return view("broadcast_to", x, shape, repeated)


def _repeated_strides(x: Slot, shape: Sizes) -> Sizes:
    """The strides of what repeats an array in row-major order, 0 along what is repeated; none for empty arrays."""
    if 0 in shape:
        return ()
    inner = [prod(x.shape[i + 1 :]) * x.dtype.itemsize if n > 1 else 0 for i, n in enumerate(x.shape)]
    return (*[0] * (len(shape) - len(inner)), *inner)


def _broadcasts(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, Sizes], ...] = (
        ((), (2, 3)), ((3,), (2, 3)), ((2, 1, 4), (5, 2, 3, 4)), ((2, 3), (2, 3)), ((1,), (0,)), ((4, 1), (4, 600)),
    )  # fmt: skip
    return [Sample((make(*small),), {"shape": large}) for small, large in cases]


@overload
def broadcast_to(x: Gradual[D], shape: type[Shape[*S]]) -> Var[D, *S]: ...
@overload
def broadcast_to(x: Gradual[D], shape: Sizes) -> Gradual[D]: ...
@op(
    infer=_infer_broadcast,
    lower=_lower_broadcast,
    vjp=(lambda g, x_shape: sum_to(g, x_shape),),
    jvp=lambda dx, shape: broadcast_to(dx, shape),
    reference=np.broadcast_to,
    samples=_broadcasts,
    errors=(
        bad(
            ShapeError,
            "argument 'shape': expected a shape that (3,) can be repeated to, got (3, 2)",
            (3,),
            shape=(3, 2),
        ),
    ),
    covers=("broadcast_to",),
    excused={"batch": "the attribute names the batch's size"},
    named=("shape", _known_sizes),
)
def broadcast_to(x: Gradual[D], shape: Sizes | type[Shape[*S]]) -> Gradual[D]:
    """``x`` repeated to ``shape``, aligned at the last axis, where sizes are 1 or missing.

    Source: numpy.broadcast_to.
    Shapes: x (...) -> shape; each axis of x, counted from the last, has the size of shape or 1

    >>> from dgrr.tape import Tape, ops
    >>> ops.broadcast_to(Tape().leaf([1.0, 2.0]), (2, 2)).numpy()
    array([[1., 2.],
           [1., 2.]])
    """
    ...


def sum_to(g: Any, shape: Sizes) -> Any:
    """The adjoint of `broadcast_to`: the sum over the axes that were repeated."""
    sizes = tuple(g.shape)
    padded = (1,) * (len(sizes) - len(shape)) + shape
    repeated = tuple(a for a, (s, p) in enumerate(zip(sizes, padded, strict=True)) if s != p)
    return reshape(reduce_sum(g, repeated), shape)


def reduced(op_name: str, x: Spec, axis: Axis, keepdims: bool) -> Spec:
    """``x`` without the axes reduced, or with one element along each. Raises ShapeError for axes it does not have."""
    axes = normal_axes(op_name, axis, x.rank)
    if keepdims:
        return like(x, tuple(1 if a in axes else s for a, s in enumerate(x.shape)))
    return like(x, tuple(s for a, s in enumerate(x.shape) if a not in axes))


def lower_reduction(x: Slot, axis: Axis, *, keepdims: bool, mean: bool) -> Slot:
    """Along rows if the last axis is reduced (or all are), else down columns, after bringing the axes together."""
    name = "reduce_mean" if mean else "reduce_sum"
    axes, out = normal_axes(name, axis, x.spec.rank), reduced(name, x.spec, axis, keepdims).shape
    if x.spec.rank and not axes:
        return x
    kept = tuple(a for a in range(x.spec.rank) if a not in axes)
    rows, n = prod(x.shape[a] for a in kept), prod(x.shape[a] for a in axes)
    if not kept or x.spec.rank - 1 in axes:
        kernel = sums.mean_rows if mean else sums.sum_rows
        return call(kernel, [ordered(x, kept + axes)], out, rows, n, work=rows * n)
    kernel = sums.mean_columns if mean else sums.sum_columns
    leading = tuple(a for a in kept if a < axes[0]) if adjacent(axes) else ()
    outer = prod(x.shape[a] for a in leading)
    trailing = tuple(a for a in kept if a not in leading)
    columns = prod(x.shape[a] for a in trailing)
    return call(kernel, [ordered(x, leading + axes + trailing)], out, outer, n, columns, work=rows * n)


def adjacent(axes: Sizes) -> bool:
    """Whether the axes lie side by side, so that the axes before them need not move."""
    return axes == tuple(range(axes[0], axes[-1] + 1))


def ordered(x: Slot, axes: Sizes) -> Slot:
    """``x`` with its axes in another order, if it is another."""
    return x if axes == tuple(range(len(axes))) else permuted(x, axes)


def spread_along(g: Any, x_shape: Sizes, axis: Axis) -> Any:
    """The adjoint of a sum: ``g`` repeated along the axes that were summed."""
    axes = normal_axes("reduce_sum", axis, len(x_shape))
    kept = tuple(1 if a in axes else s for a, s in enumerate(x_shape))
    return broadcast_to(reshape(g, kept), x_shape)


def _spread_mean(g: Any, x_shape: Sizes, axis: Axis) -> Any:
    n = prod(x_shape[a] for a in normal_axes("reduce_mean", axis, len(x_shape)))
    return spread_along(divide(g, n), x_shape, axis)


def _reductions(make: Make) -> list[Sample]:
    cases: list[tuple[Sizes, Axis]] = [
        ((), None), ((7,), None), ((5, 33), -1), ((5, 33), 0), ((3, 4, 5), 1), ((3, 4, 5), (0, 1)), ((3, 4, 5), (0, 2)),
        ((2, 3, 4, 5), (0, 2)), ((0, 3), 0), ((3, 0), -1), ((300, 3), 0), ((2, 3), ()), ((4100,), None), ((2, 70), 0),
    ]  # fmt: skip
    plain = [Sample((make(*shape),), {"axis": axis}) for shape, axis in cases]
    return [*plain, Sample((make(4, 3).T,)), Sample((make(2, 3),), {"axis": 1, "keepdims": True})]


@typed_as(reduction)
@op(
    infer=lambda x, axis, keepdims: reduced("reduce_sum", x, axis, keepdims),
    lower=lambda x, axis, keepdims: lower_reduction(x, axis, keepdims=keepdims, mean=False),
    vjp=(spread_along,),
    jvp=lambda dx, axis, keepdims: reduce_sum(dx, axis, keepdims),
    reference=reference_sums.reduce_sum,
    samples=_reductions,
    kinds={"axis": AXES},
    covers=("reduce_sum", "sum"),
    excused={"batch": "by default the batch is summed"},
)
def reduce_sum(x: Gradual[F], axis: Axis = None, keepdims: bool = False) -> Gradual[F]:
    """The sum over an axis, several, or all; +0 over none. The order of additions is fixed.

    Source: numpy.sum.
    Shapes: x (...) -> (...); without the axes that are reduced, or with 1 for each if ``keepdims``

    >>> from dgrr.tape import Tape, ops
    >>> ops.reduce_sum(Tape().leaf([[1.0, 2.0], [3.0, 4.0]]), 0).numpy()
    array([4., 6.])
    """
    ...


@typed_as(reduction)
@op(
    infer=lambda x, axis, keepdims: reduced("reduce_mean", x, axis, keepdims),
    lower=lambda x, axis, keepdims: lower_reduction(x, axis, keepdims=keepdims, mean=True),
    vjp=(_spread_mean,),
    jvp=lambda dx, axis, keepdims: reduce_mean(dx, axis, keepdims),
    reference=partial(reference_sums.reduce_sum, mean=True),
    samples=_reductions,
    kinds={"axis": AXES},
    covers=("reduce_mean",),
    excused={"batch": "by default the batch is averaged"},
)
def reduce_mean(x: Gradual[F], axis: Axis = None, keepdims: bool = False) -> Gradual[F]:
    """The sum over an axis, several, or all, divided by their number; NaN over none.

    Source: numpy.mean.
    Shapes: x (...) -> (...); without the axes that are reduced, or with 1 for each if ``keepdims``

    >>> from dgrr.tape import Tape, ops
    >>> ops.reduce_mean(Tape().leaf([[1.0, 2.0], [3.0, 4.0]]), 0).numpy()
    array([2., 3.])
    """
    ...

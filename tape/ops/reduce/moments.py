"""Variances, and sums of exponentials."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...numerics.sizes import Sizes
from ...record.kinds.values import AXES, at_least
from ...record.lowering import Slot, elementwise, view
from ...record.op_decorator import op
from ...record.samples import Make, Sample
from ...record.types import Axis, F
from ...values.shape import normal_axes
from ...values.spec import Spec
from ...var.method_types import typed_as
from ...var.var import Gradual, moment, reduction
from ..elementwise.arithmetic import divide, mul, scale, sub
from ..elementwise.exponential import exp
from ..elementwise.kernels import basic as elementwise_kernels
from ..elementwise.select import keep, not_equal
from .kernels import softmax as softmax_kernels
from .reduce import broadcast_to, lower_reduction, reduce_mean, reduce_sum, reduced, spread_along
from .reference import reductions as reference
from .rows import infer_rows, lower_rows, row_samples
from .softmax import WORK

MOMENT_KINDS = {"axis": AXES, "correction": at_least(0, "a whole number of at least")}


def infer_moment(name: str, x: Spec, axis: Axis, keepdims: bool, correction: int) -> Spec:
    """The result of a variance."""
    return reduced(name, x, axis, keepdims)


def _divisor(x_shape: Sizes, axis: Axis, correction: int) -> int:
    """The number of elements less the correction, or 0."""
    return max(prod(x_shape[a] for a in normal_axes("var", axis, len(x_shape))) - correction, 0)


def _lower_var(x: Slot, axis: Axis, keepdims: bool, correction: int) -> Slot:
    mean = lower_reduction(x, axis, keepdims=True, mean=True)
    centred = elementwise(
        elementwise_kernels.sub, x, view("broadcast_to", mean, x.shape, lambda a: np.broadcast_to(a, x.shape))
    )
    total = lower_reduction(elementwise(elementwise_kernels.mul, centred, centred), axis, keepdims=keepdims, mean=False)
    return elementwise(elementwise_kernels.divide, total, attrs=(_divisor(x.shape, axis, correction),))


def _deviation(x: Any, axis: Axis) -> Any:
    """``(x - mean) * 2``."""
    return scale(sub(x, broadcast_to(reduce_mean(x, axis, keepdims=True), tuple(x.shape))), 2.0)


def _var_vjp(g: Any, x: Any, x_shape: Sizes, axis: Axis, correction: int) -> Any:
    return mul(_deviation(x, axis), spread_along(divide(g, _divisor(x_shape, axis, correction)), x_shape, axis))


def _var_jvp(dx: Any, x: Any, axis: Axis, keepdims: bool, correction: int) -> Any:
    n = _divisor(tuple(x.shape), axis, correction)
    return divide(reduce_sum(mul(dx, _deviation(x, axis)), axis, keepdims), n)


@typed_as(moment)
@op(
    infer=partial(infer_moment, "var"),
    lower=_lower_var,
    vjp=(_var_vjp,),
    jvp=_var_jvp,
    reference=reference.var,
    samples=lambda make: row_samples(
        make,
        Sample((make(4, 5),), {"axis": 0, "correction": 1}),
        Sample((make(3, 1),), {"axis": 1, "correction": 1}),
        Sample((make(3, 0),), {"axis": 1}),
        Sample((make(4, 5) + make.dtype.type(1000),), {"axis": 1, "correction": 1, "keepdims": True}),
    ),
    kinds=MOMENT_KINDS,
    excused={"batch": "by default the batch is reduced"},
)
def var(x: Gradual[F], axis: Axis = None, keepdims: bool = False, correction: int = 0) -> Gradual[F]:
    """The variance along an axis, several, or all: ``sum((x - mean) ** 2) / (n - correction)``, in two passes.

    ``correction`` 0 is numpy's default (of the elements themselves), 1 PyTorch's (unbiased, of what they are drawn
    from). NaN where it leaves nothing to divide by, unless the sum is not 0.

    Source: numpy.var; ``correction`` is that of torch.var.
    Shapes: x (...) -> (...); without the axes that are reduced, or with 1 for each if ``keepdims``

    >>> from dgrr.tape import Tape, ops
    >>> ops.var(Tape().leaf([1.0, 3.0, 5.0]), correction=1).item()
    4.0
    """
    ...


def _weights(x: Any, y: Any, axis: Axis) -> Any:
    """The derivative by each element, ``exp(x - y)``; a y of -inf stands for 0, so that nothing gets nothing."""
    nothing: Any = -np.inf
    known = keep(y, not_equal(y, nothing))
    return exp(sub(x, spread_along(known, tuple(x.shape), axis)))


def _log_sums(make: Make) -> list[Sample]:
    special = [[-np.inf, -np.inf, -np.inf], [np.inf, 1.0, 2.0], [1.0, -np.inf, 2.0], [np.nan, 1.0, 2.0]]
    large = make(3, 5) * make.dtype.type(400)
    return row_samples(
        make,
        Sample((np.array(special, make.dtype),), {"axis": 1}),
        Sample((np.array([[-0.0], [0.0]], make.dtype),), {"axis": 1}),
        Sample((large,), {"axis": 1}),
        Sample((make(3, 0),), {"axis": 1}),
        Sample((make(37, 3),), {"axis": 1}),
    )


@typed_as(reduction)
@op(
    infer=partial(infer_rows, "logsumexp"),
    lower=partial(lower_rows, "logsumexp", softmax_kernels.logsumexp, work=WORK),
    vjp=(lambda g, x, y, x_shape, axis: mul(spread_along(g, x_shape, axis), _weights(x, y, axis)),),
    jvp=lambda dx, x, y, axis, keepdims: reduce_sum(mul(dx, _weights(x, y, axis)), axis, keepdims),
    reference=reference.logsumexp,
    samples=_log_sums,
    kinds={"axis": AXES},
    excused={"batch": "by default the batch is reduced"},
)
def logsumexp(x: Gradual[F], axis: Axis = None, keepdims: bool = False) -> Gradual[F]:
    """``log(sum(exp(x)))`` along an axis, several, or all, shifted by the maximum; -inf for no elements.

    Source: scipy.special.logsumexp.
    Shapes: x (...) -> (...); without the axes that are reduced, or with 1 for each if ``keepdims``

    >>> from dgrr.tape import Tape, ops
    >>> round(ops.logsumexp(Tape().leaf([0.0, 0.0])).item(), 4)
    0.6931
    """
    ...

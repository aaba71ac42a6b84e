"""Losses between two arrays of one shape, element by element. They never broadcast."""

from math import prod
from typing import Any, overload

import numpy as np

from ....base.arrays import Array
from ...numerics.simd import sums
from ...record.kinds.values import NOT_NEGATIVE, POSITIVE
from ...record.lowering import Slot, call, elementwise
from ...record.op_decorator import op
from ...record.pointwise_op import read
from ...record.samples import Make, Sample
from ...record.types import F, Operand, S
from ...var.var import Var
from ..elementwise.arithmetic import div, divide, mul, neg, scale, sub
from ..elementwise.clamp import absolute, clamp
from ..elementwise.functions import square
from ..elementwise.kernels import basic as arithmetic
from . import kernels, reference
from .loss import loss
from .mean import MeanOp, of_difference, of_formula
from .reduction import Each, Total


def _pairs(make: Make, *shapes: tuple[int, ...]) -> list[Sample]:
    return [Sample((make(*s), make(*s))) for s in shapes]


@overload
def mse_loss(a: Operand[F, *S], b: Operand[F, *S], reduction: Total = "mean") -> Var[F]: ...
@overload
def mse_loss(a: Operand[F, *S], b: Operand[F, *S], reduction: Each) -> Var[F, *S]: ...
@loss(
    lambda a, b: (a - b) * (a - b),
    mean=MeanOp(
        lower=lambda a, b: call(sums.mean_squared_difference, [a, b], (), a.spec.size, work=2 * a.spec.size),
        reference=reference.mse,
        samples=lambda make: _pairs(make, (), (5,), (3, 40), (4100,), (0,)),
        **of_difference(lambda a, b: scale(sub(a, b), 2.0)),
    ),
    covers=("mse_loss",),
)
def mse_loss(a: Any, b: Any) -> Any:
    """The mean of ``(a - b) ** 2``; both sides get gradients.

    Source: torch.nn.functional.mse_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.mse_loss(Tape().leaf([1.0, 2.0]), [1.0, 4.0]).item()
    2.0
    """
    return square(sub(a, b))


def _lower_mse_grad(a: Slot, b: Slot) -> Slot:
    doubled = elementwise(arithmetic.scale, elementwise(arithmetic.sub, a, b), attrs=(2.0,))
    return elementwise(arithmetic.divide, doubled, attrs=(a.spec.size,))


def _over_count(g: Any, a_shape: tuple[int, ...]) -> Any:
    return divide(scale(g, 2.0), prod(a_shape))


@op(
    lower=_lower_mse_grad,
    vjp=(lambda g, a_shape: _over_count(g, a_shape), lambda g, a_shape: neg(_over_count(g, a_shape))),
    jvp=lambda da, db, a_shape: _over_count(sub(da, db), a_shape),
    reference=lambda a, b: ((a - b) * a.dtype.type(2)) / a.dtype.type(a.size),
    samples=lambda make: _pairs(make, (), (5,), (3, 11), (4100,), (0,)),
    covers=("mse_grad",),
    excused={"batch": "it divides by the size of the batch"},
)
def mse_grad(a: Var[F, *S], b: Var[F, *S]) -> Var[F, *S]:
    """``2 (a - b) / n``: the gradient of ``mse_loss(a, b)`` by a.

    Source: the derivative of torch.nn.functional.mse_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.mse_grad(Tape().leaf([1.0, 2.0]), [1.0, 4.0]).numpy()
    array([ 0., -2.])
    """
    ...


@overload
def l1_loss(a: Operand[F, *S], b: Operand[F, *S], reduction: Total = "mean") -> Var[F]: ...
@overload
def l1_loss(a: Operand[F, *S], b: Operand[F, *S], reduction: Each) -> Var[F, *S]: ...
@loss(lambda a, b: abs(a - b))
def l1_loss(a: Any, b: Any) -> Any:
    """The mean of ``|a - b|``; the gradient is 0 where both are equal.

    Source: torch.nn.functional.l1_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.l1_loss(Tape().leaf([1.0, 2.0]), [1.0, 4.0]).item()
    1.0
    """
    return absolute(sub(a, b))


@overload
def huber_loss(a: Operand[F, *S], b: Operand[F, *S], delta: float = 1.0, reduction: Total = "mean") -> Var[F]: ...
@overload
def huber_loss(a: Operand[F, *S], b: Operand[F, *S], delta: float = 1.0, *, reduction: Each) -> Var[F, *S]: ...
@loss(
    lambda a, b, delta: read(kernels.huber_terms)(a, b, a.dtype.type(delta)),
    mean=MeanOp(
        samples=lambda make: [
            *_pairs(make, (), (5,), (3, 11), (4100,), (0,)),
            Sample((make(3, 7), make(3, 7)), {"delta": 0.25}),
        ],
        **of_formula(kernels.huber_terms, work=8),
        **of_difference(lambda a, b, delta: clamp(sub(a, b), -delta, delta)),
    ),
    kinds={"delta": POSITIVE},
    settings=({"delta": 0.25},),
    instead={"delta": "delta * delta * ops.huber_loss(a / delta, b / delta, 1.0)"},
)
def huber_loss(a: Any, b: Any, delta: float) -> Any:
    """The mean of ``d² / 2`` where ``|d| <= delta``, else ``delta (|d| - delta / 2)``, with ``d = a - b``.

    Source: Huber (1964), Robust estimation of a location parameter; torch.nn.functional.huber_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.huber_loss(Tape().leaf([0.0, 0.0]), [1.0, 3.0]).item()
    1.5
    """
    d: Any = sub(a, b)
    least: Any = clamp(d, -delta, delta)
    return mul(least, sub(d, scale(least, 0.5)))


def _reference_smooth(a: Array, b: Array, beta: float) -> Array:
    bound, size = a.dtype.type(beta), abs(a - b)
    least = np.where(size <= bound, size, bound)
    return (least / bound) * (size - least * a.dtype.type(0.5)) if beta else size


@overload
def smooth_l1_loss(a: Operand[F, *S], b: Operand[F, *S], beta: float = 1.0, reduction: Total = "mean") -> Var[F]: ...
@overload
def smooth_l1_loss(a: Operand[F, *S], b: Operand[F, *S], beta: float = 1.0, *, reduction: Each) -> Var[F, *S]: ...
@loss(_reference_smooth, kinds={"beta": NOT_NEGATIVE}, settings=({"beta": 0.25}, {"beta": 0.5}, {"beta": 0.0}))
def smooth_l1_loss(a: Any, b: Any, beta: float) -> Any:
    """The mean of ``d² / (2 beta)`` where ``|d| <= beta``, else ``|d| - beta / 2``, with ``d = a - b``.

    It is `huber_loss` divided by its delta, and `l1_loss` for a beta of 0.

    Source: Girshick (2015), Fast R-CNN; torch.nn.functional.smooth_l1_loss.

    >>> from dgrr.tape import Tape, ops
    >>> ops.smooth_l1_loss(Tape().leaf([0.0, 0.0]), [1.0, 3.0], beta=2.0).item()
    1.125
    """
    d: Any = sub(a, b)
    if beta == 0:
        return absolute(d)
    least: Any = clamp(d, -beta, beta)
    bound: Any = beta
    return mul(div(least, bound), sub(d, scale(least, 0.5)))

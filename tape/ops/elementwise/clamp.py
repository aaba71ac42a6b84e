"""Size, the larger and the smaller of two, and clamping: ops with a kink, and the ops of their gradients."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import isnan

import numpy as np

from ...errors import DomainError, ShapeError
from ...record.derivative import NO_GRAD
from ...record.pointwise_op import SPECIAL, pointwise_op
from ...record.samples import Make, Sample, bad
from ...record.types import F, Operand, S
from ...values.spec import Spec
from ...var.var import Var
from .kernels import clamp as kernels


def _pairs(make: Make) -> list[Sample]:
    """Pairs without ties, then each special value beside each other."""
    special = np.array(SPECIAL).astype(make.dtype)
    every = Sample((np.repeat(special, special.size), np.tile(special, special.size)))
    return [*(Sample((make(*s), make(*s))) for s in ((), (0,), (5,), (2, 3, 37))), every]


UNREPEATABLE = bad(ShapeError, "argument 'b': expected a shape that broadcasts with (2, 3), got (3, 2)", (2, 3), (3, 2))


@pointwise_op(kernels.absolute, lambda d, x: times_sign(d, x), covers=("abs",))
def absolute(x: Var[F, *S]) -> Var[F, *S]:
    """``|x|``: the sign bit cleared. The gradient at 0 is 0.

    Source: numpy.absolute.

    >>> from dgrr.tape import Tape, ops
    >>> ops.absolute(Tape().leaf([1.0, -2.0])).numpy()
    array([1., 2.])
    """
    ...


@pointwise_op(kernels.times_sign, lambda d, x: times_sign(d, x), NO_GRAD, samples=_pairs, private=True)
def times_sign(g: Var[F, *S], x: Var[F, *S]) -> Var[F, *S]:
    """``g`` where ``x > 0``, ``-g`` where ``x < 0``, else +0: the gradient of absolute."""
    ...


@pointwise_op(
    kernels.maximum,
    lambda d, a, b: winner_share(d, a, b),
    lambda d, a, b: winner_share(d, b, a),
    samples=_pairs,
    errors=(UNREPEATABLE,),
    covers=("max",),
    repeats=True,
)
def maximum(a: Operand[F, *S], b: Operand[F, *S]) -> Var[F, *S]:
    """The larger of two; NaN wins, and -0 is less than +0. Ties, and NaN, split the gradient in halves.

    Operands of several shapes are broadcast, as by operators.

    Source: maximum of IEEE 754-2019; gradients of ties as torch.maximum.

    >>> from dgrr.tape import Tape, ops
    >>> ops.maximum(Tape().leaf([1.0, 5.0]), [2.0, 3.0]).numpy()
    array([2., 5.])
    """
    ...


@pointwise_op(
    kernels.minimum,
    lambda d, a, b: winner_share(d, b, a),
    lambda d, a, b: winner_share(d, a, b),
    samples=_pairs,
    errors=(UNREPEATABLE,),
    covers=("min",),
    repeats=True,
)
def minimum(a: Operand[F, *S], b: Operand[F, *S]) -> Var[F, *S]:
    """The smaller of two; NaN wins, and -0 is less than +0. Ties, and NaN, split the gradient in halves.

    Operands of several shapes are broadcast, as by operators.

    Source: minimum of IEEE 754-2019; gradients of ties as torch.minimum.

    >>> from dgrr.tape import Tape, ops
    >>> ops.minimum(Tape().leaf([1.0, 5.0]), [2.0, 3.0]).numpy()
    array([1., 3.])
    """
    ...


@pointwise_op(
    kernels.winner_share,
    lambda d, a, b: winner_share(d, a, b),
    NO_GRAD,
    NO_GRAD,
    samples=lambda make: [Sample((make(*s.arrays[0].shape), *s.arrays)) for s in _pairs(make)],  # type: ignore[union-attr]
    private=True,
)
def winner_share(g: Var[F, *S], a: Var[F, *S], b: Var[F, *S]) -> Var[F, *S]:
    """``g`` where ``a > b``, +0 where ``a < b``, else ``g / 2``: the gradients of maximum and minimum."""
    ...


def _infer_clamp(x: Spec, low: float, high: float) -> Spec:
    for name, value in (("low", low), ("high", high)):
        if isnan(value):
            raise DomainError(f"clamp: argument {name!r}: expected a number, got nan; use inf for no bound")
    return x


def _clamps(make: Make) -> list[Sample]:
    special = np.array(SPECIAL).astype(make.dtype)
    intervals = ((-1.0, 1.0), (-0.5, np.inf), (0.0, 0.5), (1.0, -1.0))
    return [Sample((x,), {"low": a, "high": b}) for a, b in intervals for x in (make(3, 7), special)]


@pointwise_op(
    kernels.clamp,
    lambda d, x, low, high: where_inside(d, x, low, high),
    infer=_infer_clamp,
    samples=_clamps,
    errors=(
        bad(DomainError, "clamp: argument 'high': expected a number, got nan", (2,), low=0.0, high=np.nan),
        bad(DomainError, "clamp: argument 'low': expected a number, got nan", (2,), low=np.nan, high=0.0),
    ),
    covers=("clamp",),
    instead={
        "low": "ops.clamp(ops.maximum(x, low.broadcast_to(x.shape)), -np.inf, high)",
        "high": "ops.minimum(ops.clamp(x, low, np.inf), high.broadcast_to(x.shape))",
    },
)
def clamp(x: Var[F, *S], low: float, high: float) -> Var[F, *S]:
    """``minimum(high, maximum(low, x))``; NaN stays. The gradient is ``g`` where ``low < x < high``, else 0.

    An infinite bound is none. If ``low > high`` every element is ``high``.

    Source: torch.clamp, whose gradient passes at the bounds too.

    >>> from dgrr.tape import Tape, ops
    >>> ops.clamp(Tape().leaf([-3.0, 0.5, 3.0]), -1.0, 1.0).numpy()
    array([-1. ,  0.5,  1. ])
    """
    ...


@pointwise_op(
    kernels.where_inside,
    lambda d, x, low, high: where_inside(d, x, low, high),
    NO_GRAD,
    samples=lambda make: [Sample((make(*s.arrays[0].shape), *s.arrays), s.attrs) for s in _clamps(make)],  # type: ignore[union-attr]
    private=True,
)
def where_inside(g: Var[F, *S], x: Var[F, *S], low: float, high: float) -> Var[F, *S]:
    """``g`` where ``low < x < high``, else +0: the gradient of clamp."""
    ...

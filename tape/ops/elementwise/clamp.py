"""Size, the larger and the smaller of two, and clamping: ops with a kink, and the ops of their gradients."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import isnan
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import DomainError, ShapeError
from ...record.derivative import NO_GRAD
from ...record.lowering import elementwise
from ...record.op import op
from ...record.samples import Make, Sample, bad, unary
from ...record.types import F, S
from ...values.spec import Spec
from ...var.var import Var
from .arithmetic import BOTH, EACH, INTEGERS, SPECIAL, add
from .kernels import clamp as kernels


def _pairs(make: Make) -> list[Sample]:
    """Pairs without ties, then each special value beside each other."""
    special = np.array(SPECIAL).astype(make.dtype)
    every = Sample((np.repeat(special, special.size), np.tile(special, special.size)))
    return [*(Sample((make(*s), make(*s))) for s in ((), (0,), (5,), (2, 3, 37))), every]


UNREPEATABLE = bad(ShapeError, "argument 'b': expected a shape that broadcasts with (2, 3), got (3, 2)", (2, 3), (3, 2))


@op(
    lower=lambda x: elementwise(kernels.absolute, x),
    vjp=(lambda g, x: times_sign(g, x),),
    jvp=lambda dx, x: times_sign(dx, x),
    reference=lambda x: np.copysign(x, x.dtype.type(1)),
    samples=unary(SPECIAL),
    errors=(INTEGERS,),
    covers=("abs",),
    batch_axis=EACH,
)
def absolute(x: Var[F, *S]) -> Var[F, *S]:
    """``|x|``: the sign bit cleared. The gradient at 0 is 0.

    Source: numpy.absolute.

    >>> from dgrr.tape import Tape, ops
    >>> ops.absolute(Tape().leaf([1.0, -2.0])).numpy()
    array([1., 2.])
    """
    ...


@op(
    lower=lambda g, x: elementwise(kernels.times_sign, g, x),
    vjp=(lambda g, x: times_sign(g, x), NO_GRAD),
    jvp=lambda dg, x: times_sign(dg, x),
    reference=lambda g, x: np.where(x > 0, g, np.where(x < 0, -g, g.dtype.type(0))),
    samples=_pairs,
    batch_axis={"g": 0, "x": 0},
    private=True,
)
def times_sign(g: Var[F, *S], x: Var[F, *S]) -> Var[F, *S]:
    """``g`` where ``x > 0``, ``-g`` where ``x < 0``, else +0: the gradient of absolute."""
    ...


def _reference_extreme(a: Array, b: Array, sign: int) -> Array:
    """The larger (sign 1) or smaller (-1) of two, ordered by value and then by sign bit; NaN before both."""
    first = np.where(a == b, np.signbit(a) == (sign < 0), a * sign > b * sign)
    return np.where(np.isnan(a), a, np.where(np.isnan(b), b, np.where(first, a, b)))


def _tangent(da: Any, db: Any, a: Any, b: Any) -> Any:
    return add(winner_share(da, a, b), winner_share(db, b, a))


@op(
    lower=lambda a, b: elementwise(kernels.maximum, a, b),
    vjp=(lambda g, a, b: winner_share(g, a, b), lambda g, a, b: winner_share(g, b, a)),
    jvp=_tangent,
    reference=lambda a, b: _reference_extreme(a, b, 1),
    samples=_pairs,
    errors=(UNREPEATABLE,),
    covers=("max",),
    repeats=True,
    batch_axis=BOTH,
)
def maximum(a: Var[F, *S], b: Var[F, *S]) -> Var[F, *S]:
    """The larger of two; NaN wins, and -0 is less than +0. Ties, and NaN, split the gradient in halves.

    Operands of several shapes are broadcast, as by operators.

    Source: maximum of IEEE 754-2019; gradients of ties as torch.maximum.

    >>> from dgrr.tape import Tape, ops
    >>> ops.maximum(Tape().leaf([1.0, 5.0]), [2.0, 3.0]).numpy()
    array([2., 5.])
    """
    ...


@op(
    lower=lambda a, b: elementwise(kernels.minimum, a, b),
    vjp=(lambda g, a, b: winner_share(g, b, a), lambda g, a, b: winner_share(g, a, b)),
    jvp=lambda da, db, a, b: _tangent(da, db, b, a),
    reference=lambda a, b: _reference_extreme(a, b, -1),
    samples=_pairs,
    errors=(UNREPEATABLE,),
    covers=("min",),
    repeats=True,
    batch_axis=BOTH,
)
def minimum(a: Var[F, *S], b: Var[F, *S]) -> Var[F, *S]:
    """The smaller of two; NaN wins, and -0 is less than +0. Ties, and NaN, split the gradient in halves.

    Operands of several shapes are broadcast, as by operators.

    Source: minimum of IEEE 754-2019; gradients of ties as torch.minimum.

    >>> from dgrr.tape import Tape, ops
    >>> ops.minimum(Tape().leaf([1.0, 5.0]), [2.0, 3.0]).numpy()
    array([1., 3.])
    """
    ...


@op(
    lower=lambda g, a, b: elementwise(kernels.winner_share, g, a, b),
    vjp=(lambda g, a, b: winner_share(g, a, b), NO_GRAD, NO_GRAD),
    jvp=lambda dg, a, b: winner_share(dg, a, b),
    reference=lambda g, a, b: np.where(a > b, g, np.where(a < b, g.dtype.type(0), g * g.dtype.type(0.5))),
    samples=lambda make: [Sample((make(*s.arrays[0].shape), *s.arrays)) for s in _pairs(make)],  # type: ignore[union-attr]
    batch_axis={"g": 0, "a": 0, "b": 0},
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


def _reference_clamp(x: Array, low: float, high: float) -> Array:
    raised = _reference_extreme(np.full_like(x, low), x, 1)
    return _reference_extreme(np.full_like(x, high), raised, -1)


def _clamps(make: Make) -> list[Sample]:
    special = np.array(SPECIAL).astype(make.dtype)
    intervals = ((-1.0, 1.0), (-0.5, np.inf), (0.0, 0.5), (1.0, -1.0))
    return [Sample((x,), {"low": a, "high": b}) for a, b in intervals for x in (make(3, 7), special)]


@op(
    infer=_infer_clamp,
    lower=lambda x, low, high: elementwise(kernels.clamp, x, attrs=(float(low), float(high))),
    vjp=(lambda g, x, low, high: where_inside(g, x, low, high),),
    jvp=lambda dx, x, low, high: where_inside(dx, x, low, high),
    reference=_reference_clamp,
    samples=_clamps,
    errors=(
        bad(DomainError, "clamp: argument 'high': expected a number, got nan", (2,), low=0.0, high=np.nan),
        bad(DomainError, "clamp: argument 'low': expected a number, got nan", (2,), low=np.nan, high=0.0),
    ),
    covers=("clamp",),
    batch_axis=EACH,
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


@op(
    lower=lambda g, x, low, high: elementwise(kernels.where_inside, g, x, attrs=(float(low), float(high))),
    vjp=(lambda g, x, low, high: where_inside(g, x, low, high), NO_GRAD),
    jvp=lambda dg, x, low, high: where_inside(dg, x, low, high),
    reference=lambda g, x, low, high: np.where((x > x.dtype.type(low)) & (x < x.dtype.type(high)), g, g.dtype.type(0)),
    samples=lambda make: [Sample((make(*s.arrays[0].shape), *s.arrays), s.attrs) for s in _clamps(make)],  # type: ignore[union-attr]
    batch_axis={"g": 0, "x": 0},
    private=True,
)
def where_inside(g: Var[F, *S], x: Var[F, *S], low: float, high: float) -> Var[F, *S]:
    """``g`` where ``low < x < high``, else +0: the gradient of clamp."""
    ...

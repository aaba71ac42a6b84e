"""Smooth functions of each element, beyond those that stand beside the arithmetic."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import numpy as np

from ...numerics.math.reference import functions as reference
from ...record.kinds.values import POSITIVE
from ...record.lowering import Slot, elementwise
from ...record.op_decorator import op
from ...record.pointwise_op import SPECIAL, pointwise_op
from ...record.samples import Make, Sample, unary_positive
from ...record.types import F, S
from ...var.var import Var
from .arithmetic import div, mul, neg, scale
from .exponential import exp
from .kernels import basic as arithmetic, functions as kernels, trigonometry as kernels_trigonometry

TWO_OVER_ROOT_PI = 1.1283791670955126
"""2 / √pi."""
LARGE = (1e5, 1.0, 2e10, -1e22, 3e30)
"""Angles of many turns beside one of none."""


@pointwise_op(
    kernels.shift,
    lambda d: d,
    samples=lambda make: [Sample((make(2, 5),), {"c": c}) for c in (0.3, -1.0, -0.0)],
    private=True,
)
def shift(x: Var[F, *S], c: float) -> Var[F, *S]:
    """``x + c`` for a number c, rounded to the element type."""
    ...


@pointwise_op(
    arithmetic.mul,
    lambda d, x: mul(d, scale(x, 2.0)),
    lower=lambda x: elementwise(arithmetic.mul, x, x),
    reference=lambda x: x * x,
)
def square(x: Var[F, *S]) -> Var[F, *S]:
    """``x * x``.

    Source: numpy.square.

    >>> from dgrr.tape import Tape, ops
    >>> ops.square(Tape().leaf([3.0, -0.5])).numpy()
    array([9.  , 0.25])
    """
    ...


@pointwise_op(kernels.inv, lambda d, y: neg(mul(d, mul(y, y))), positive=True, covers=("inv",))
def inv(x: Var[F, *S]) -> Var[F, *S]:
    """``1 / x`` by IEEE-754: infinite with the sign of a zero.

    Source: numpy.reciprocal.

    >>> from dgrr.tape import Tape, ops
    >>> ops.inv(Tape().leaf([4.0, -0.0])).numpy()
    array([0.25, -inf])
    """
    ...


@pointwise_op(kernels.rsqrt, lambda d, y: scale(mul(d, mul(y, mul(y, y))), -0.5), positive=True)
def rsqrt(x: Var[F, *S]) -> Var[F, *S]:
    """``1 / sqrt(x)``, both rounded: NaN below 0, infinite with the sign of a zero.

    Source: torch.rsqrt.

    >>> from dgrr.tape import Tape, ops
    >>> ops.rsqrt(Tape().leaf([4.0, 0.0])).numpy()
    array([0.5, inf])
    """
    ...


@pointwise_op(
    kernels.log1p, lambda d, x: div(d, shift(x, 1.0)), positive=True, at=[(-0.5, -1.0, -2.0, 1e-9, -1e-9)], work=30
)
def log1p(x: Var[F, *S]) -> Var[F, *S]:
    """``log(1 + x)``, accurate near 0: -inf at -1, NaN below.

    Source: numpy.log1p.

    >>> from dgrr.tape import Tape, ops
    >>> ops.log1p(Tape().leaf([0.0, -1.0])).numpy()
    array([  0., -inf])
    """
    ...


@pointwise_op(kernels.expm1, lambda d, x: mul(d, exp(x)), at=[(1e-9, -1e-9, 50.0, -50.0)], work=25)
def expm1(x: Var[F, *S]) -> Var[F, *S]:
    """``e ** x - 1``, accurate near 0.

    Source: numpy.expm1.

    >>> from dgrr.tape import Tape, ops
    >>> ops.expm1(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 1.7183])
    """
    ...


@pointwise_op(
    kernels_trigonometry.sin, lambda d, x: mul(d, cos(x)), at=[(*LARGE, np.inf)], work=30, reference=reference.sin
)
def sin(x: Var[F, *S]) -> Var[F, *S]:
    """The sine of an angle in radians, accurate for angles of any size; NaN for infinite ones.

    Source: numpy.sin.

    >>> from dgrr.tape import Tape, ops
    >>> ops.sin(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.8415])
    """
    ...


@pointwise_op(
    kernels_trigonometry.cos, lambda d, x: neg(mul(d, sin(x))), at=[(*LARGE, np.inf)], work=30, reference=reference.cos
)
def cos(x: Var[F, *S]) -> Var[F, *S]:
    """The cosine of an angle in radians, accurate for angles of any size; NaN for infinite ones.

    Source: numpy.cos.

    >>> from dgrr.tape import Tape, ops
    >>> ops.cos(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([1.    , 0.5403])
    """
    ...


@pointwise_op(
    kernels.erf,
    lambda d, x: mul(d, scale(exp(neg(square(x))), TWO_OVER_ROOT_PI)),
    at=[(0.875, -0.875, 3.9, -6.1)],
    work=40,
)
def erf(x: Var[F, *S]) -> Var[F, *S]:
    """The error function ``2 / sqrt(pi)`` times the integral of ``exp(-t²)`` from 0 to x.

    Source: NIST Digital Library of Mathematical Functions, 7.2.1; scipy.special.erf.

    >>> from dgrr.tape import Tape, ops
    >>> ops.erf(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.8427])
    """
    ...


def _lower_safe_log(x: Slot, eps: float) -> Slot:
    shifted = elementwise(kernels.shift, x, attrs=(float(eps),))
    return elementwise(arithmetic.log, shifted, work=20)


def _safe_logs(make: Make) -> list[Sample]:
    plain = unary_positive(SPECIAL)(make)
    return [*plain, Sample((make.positive(5),), {"eps": 0.25})]


@op(
    kinds={"eps": POSITIVE},
    lower=_lower_safe_log,
    along=(lambda d, x, eps: div(d, shift(x, eps)),),
    reference=lambda x, eps=1e-6: reference.log(x + x.dtype.type(eps)),
    samples=_safe_logs,
    covers=("safe_log",),
    batch_axis={"x": 0},
    instead={"eps": "ops.log(x + eps)"},
)
def safe_log(x: Var[F, *S], eps: float = 1e-6) -> Var[F, *S]:
    """``log(x + eps)``: finite at 0, NaN below ``-eps``.

    Source: numpy.log of ``x + eps``.

    >>> from dgrr.tape import Tape, ops
    >>> ops.safe_log(Tape().leaf([0.0, 0.5]), eps=0.5).numpy().round(4)
    array([-0.6931,  0.    ])
    """
    ...

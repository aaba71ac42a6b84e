"""Activations that are more than one function of the arithmetic, and the ops of their gradients."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from math import isfinite
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import DomainError, DTypeError
from ...numerics.math import reference
from ...record.derivative import NO_GRAD
from ...record.lowering import elementwise
from ...record.op import op
from ...record.samples import Make, Sample, Samples, bad, unary
from ...record.types import F, S
from ...values.spec import Spec
from ...var.var import Var
from .arithmetic import EACH, INTEGERS, SPECIAL, add, mul, neg, scale, sub, where_positive
from .exponential import exp, sigmoid, tanh
from .functions import erf, shift, square
from .kernels import functions as kernels
from .kernels.functions import GELU_CUBIC, ROOT_HALF, ROOT_TWO_OVER_PI

GELU_CUBIC_SLOPE = 0.134145
"""``3 * GELU_CUBIC``: a literal, as Python's arithmetic follows the rounding mode of the calling thread."""

NORMAL_PEAK = 0.3989422804014327
"""1 / √(2 pi): the density of the normal distribution at 0."""


@op(
    lower=lambda x: elementwise(kernels.softplus, x, work=50),
    vjp=(lambda g, x: mul(g, sigmoid(x)),),
    jvp=lambda dx, x: mul(dx, sigmoid(x)),
    reference=reference.softplus,
    samples=unary(SPECIAL, (1000.0, -1000.0, 30.0, -30.0)),
    errors=(INTEGERS,),
    covers=("softplus",),
    batch_axis=EACH,
)
def softplus(x: Var[F, *S]) -> Var[F, *S]:
    """``log(1 + e ** x)``, without overflow or loss on either side.

    Source: Dugas, Bengio, Bélisle, Nadeau and Garcia (2001); torch.nn.functional.softplus without its threshold.

    >>> from dgrr.tape import Tape, ops
    >>> ops.softplus(Tape().leaf([0.0, 100.0])).numpy().round(4)
    array([  0.6931, 100.    ])
    """
    ...


def _silu_tangent(dx: Any, x: Any) -> Any:
    """``dx (s + x s (1 - s))`` with s the sigmoid."""
    s = sigmoid(x)
    return mul(dx, add(s, mul(x, sub(s, mul(s, s)))))


@op(
    lower=lambda x: elementwise(kernels.silu, x, work=30),
    vjp=(lambda g, x: _silu_tangent(g, x),),
    jvp=_silu_tangent,
    reference=lambda x: x * reference.sigmoid(x),
    samples=unary(SPECIAL),
    errors=(INTEGERS,),
    batch_axis=EACH,
)
def silu(x: Var[F, *S]) -> Var[F, *S]:
    """``x * sigmoid(x)``, also called swish; NaN at -inf.

    Source: Elfwing, Uchibe and Doya (2018); Ramachandran, Zoph and Le (2017), who call it swish.

    >>> from dgrr.tape import Tape, ops
    >>> ops.silu(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.7311])
    """
    ...


def _gelu_slope(x: Any, approximate: str) -> Any:
    if approximate == "none":  # the distribution, and x times the density
        below = scale(shift(erf(scale(x, ROOT_HALF)), 1.0), 0.5)
        return add(below, mul(x, scale(exp(scale(square(x), -0.5)), NORMAL_PEAK)))
    x2 = square(x)
    t = tanh(scale(mul(x, shift(scale(x2, GELU_CUBIC), 1.0)), ROOT_TWO_OVER_PI))
    inner = scale(shift(scale(x2, GELU_CUBIC_SLOPE), 1.0), ROOT_TWO_OVER_PI)
    outer = mul(scale(x, 0.5), mul(shift(neg(square(t)), 1.0), inner))
    return add(scale(shift(t, 1.0), 0.5), outer)


def _infer_gelu(x: Spec, approximate: str) -> Spec:
    if approximate not in ("none", "tanh"):
        raise DomainError(f"gelu: argument 'approximate': expected 'none' or 'tanh', got {approximate!r}")
    return x


def _reference_gelu(x: Array, approximate: str = "none") -> Array:
    real = x.dtype.type
    if approximate == "none":
        below = reference.erf(x * real(ROOT_HALF))
    else:
        below = reference.tanh(real(ROOT_TWO_OVER_PI) * (x + real(GELU_CUBIC) * (x * x * x)))
    return np.asarray((real(0.5) * x) * (real(1) + below))


def _gelus(make: Make) -> list[Sample]:
    arrays = [s.arrays for s in unary(SPECIAL)(make)]
    return [Sample(a, {"approximate": how}) for how in ("none", "tanh") for a in arrays]


@op(
    infer=_infer_gelu,
    lower=lambda x, approximate: elementwise(kernels.gelu if approximate == "none" else kernels.gelu_tanh, x, work=45),
    vjp=(lambda g, x, approximate: mul(g, _gelu_slope(x, approximate)),),
    jvp=lambda dx, x, approximate: mul(dx, _gelu_slope(x, approximate)),
    reference=_reference_gelu,
    samples=_gelus,
    errors=(
        bad(DomainError, "argument 'approximate': expected 'none' or 'tanh', got 'erf'", (2,), approximate="erf"),
        bad(DTypeError, "argument 'x': expected float32 or float64, got int64", np.arange(3)),
    ),
    batch_axis=EACH,
)
def gelu(x: Var[F, *S], approximate: str = "none") -> Var[F, *S]:
    """``x`` times the normal distribution at x, ``x / 2 (1 + erf(x / sqrt(2)))``; NaN at -inf.

    ``approximate="tanh"``: ``x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³)))``.

    Source: Hendrycks and Gimpel (2016), both forms; torch.nn.functional.gelu.

    >>> from dgrr.tape import Tape, ops
    >>> ops.gelu(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.8413])
    """
    ...


def _finite(op_name: str, argument: str, x: Spec, value: float) -> Spec:
    if not isfinite(value):
        raise DomainError(f"{op_name}: argument {argument!r}: expected a finite number, got {value!r}")
    return x


def _with(argument: str, *values: float) -> Samples:
    """Ordinary and special values with the default and with other values of an attribute."""

    def samples(make: Make) -> list[Sample]:
        special = np.array(SPECIAL).astype(make.dtype)
        return [*unary(SPECIAL)(make), *(Sample((x,), {argument: v}) for v in values for x in (make(3, 7), special))]

    return samples


@op(
    infer=lambda x, negative_slope: _finite("leaky_relu", "negative_slope", x, negative_slope),
    lower=lambda x, negative_slope: elementwise(kernels.leaky, x, x, attrs=(float(negative_slope),)),
    vjp=(lambda g, x, negative_slope: leaky(g, x, negative_slope),),
    jvp=lambda dx, x, negative_slope: leaky(dx, x, negative_slope),
    reference=lambda x, negative_slope=0.01: np.where(x > 0, x, x * x.dtype.type(negative_slope)),
    samples=_with("negative_slope", 0.3, 0.0, -1.0),
    errors=(bad(DomainError, "'negative_slope': expected a finite number, got inf", (2,), negative_slope=np.inf),),
    batch_axis=EACH,
    instead={"negative_slope": "ops.relu(x) - negative_slope * ops.relu(-x)"},
)
def leaky_relu(x: Var[F, *S], negative_slope: float = 0.01) -> Var[F, *S]:
    """``x`` where it is positive, else ``x * negative_slope``. The gradient at 0 is that of the negative side.

    Source: Maas, Hannun and Ng (2013); torch.nn.functional.leaky_relu.

    >>> from dgrr.tape import Tape, ops
    >>> ops.leaky_relu(Tape().leaf([2.0, -2.0]), 0.25).numpy()
    array([ 2. , -0.5])
    """
    ...


@op(
    lower=lambda g, x, slope: elementwise(kernels.leaky, g, x, attrs=(float(slope),)),
    vjp=(lambda g, x, slope: leaky(g, x, slope), NO_GRAD),
    jvp=lambda dg, x, slope: leaky(dg, x, slope),
    reference=lambda g, x, slope: np.where(x > 0, g, g * g.dtype.type(slope)),
    samples=lambda make: [Sample((make(4, 5), make(4, 5)), {"slope": slope}) for slope in (0.1, -0.5)],
    batch_axis={"g": 0, "x": 0},
    private=True,
)
def leaky(g: Var[F, *S], x: Var[F, *S], slope: float) -> Var[F, *S]:
    """``g`` where ``x > 0``, else ``g * slope``: the gradient of leaky_relu."""
    ...


@op(
    infer=lambda x, alpha: _finite("elu", "alpha", x, alpha),
    lower=lambda x, alpha: elementwise(kernels.elu, x, attrs=(float(alpha),), work=30),
    vjp=(lambda g, x, alpha: mul(g, elu_slope(x, alpha)),),
    jvp=lambda dx, x, alpha: mul(dx, elu_slope(x, alpha)),
    reference=lambda x, alpha=1.0: np.where(x > 0, x, reference.expm1(x) * x.dtype.type(alpha)),
    samples=_with("alpha", 0.5, 0.0),
    errors=(bad(DomainError, "elu: argument 'alpha': expected a finite number, got nan", (2,), alpha=np.nan),),
    batch_axis=EACH,
    instead={"alpha": "ops.relu(x) + alpha * ops.expm1(ops.minimum(x, 0.0))"},
)
def elu(x: Var[F, *S], alpha: float = 1.0) -> Var[F, *S]:
    """``x`` where it is positive, else ``alpha * (e ** x - 1)``. The gradient at 0 is ``alpha``.

    Source: Clevert, Unterthiner and Hochreiter (2016); torch.nn.functional.elu.

    >>> from dgrr.tape import Tape, ops
    >>> ops.elu(Tape().leaf([2.0, -1.0])).numpy().round(4)
    array([ 2.    , -0.6321])
    """
    ...


@op(
    lower=lambda x, alpha: elementwise(kernels.elu_slope, x, attrs=(float(alpha),), work=25),
    vjp=(lambda g, x, alpha: mul(g, where_positive(elu_slope(x, alpha), neg(x))),),
    jvp=lambda dx, x, alpha: mul(dx, where_positive(elu_slope(x, alpha), neg(x))),
    reference=lambda x, alpha: np.where(x > 0, x.dtype.type(1), reference.exp(x) * x.dtype.type(alpha)),
    samples=lambda make: [Sample(s.arrays, {"alpha": 0.5, **s.attrs}) for s in unary(SPECIAL)(make)],
    batch_axis=EACH,
    private=True,
)
def elu_slope(x: Var[F, *S], alpha: float) -> Var[F, *S]:
    """1 where ``x > 0``, else ``alpha * e ** x``: the slope of elu."""
    ...

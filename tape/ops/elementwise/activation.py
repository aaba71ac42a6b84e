"""Activations that are more than one function of the arithmetic, and the ops of their gradients."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from typing import Any

import numpy as np

from ...record.derivative import NO_GRAD
from ...record.kinds.values import FINITE, POSITIVE, one_of
from ...record.lowering import elementwise
from ...record.op_decorator import op
from ...record.pointwise_op import SPECIAL, pointwise_op, read
from ...record.samples import Make, Sample, Samples, unary
from ...record.types import F, S
from ...var.var import Var
from .arithmetic import add, mul, neg, scale, sub, where_positive
from .clamp import absolute, clamp, where_inside
from .exponential import exp, sigmoid, tanh
from .functions import erf, inv, shift, square
from .kernels import functions as kernels
from .kernels.functions import GELU_CUBIC, ROOT_HALF, ROOT_TWO_OVER_PI, SELU_ALPHA, SELU_SCALE

GELU_CUBIC_SLOPE = 0.134145
"""``3 * GELU_CUBIC``: a literal, as Python's arithmetic follows the rounding mode of the calling thread."""

NORMAL_PEAK = 0.3989422804014327
"""1 / √(2 pi): the density of the normal distribution at 0."""

SIXTH = 0.16666666666666666


@pointwise_op(
    kernels.softplus,
    lambda d, x: mul(d, sigmoid(x)),
    at=[(1000.0, -1000.0, 30.0, -30.0)],
    work=50,
    covers=("softplus",),
)
def softplus(x: Var[F, *S]) -> Var[F, *S]:
    """``log(1 + e ** x)``, without overflow or loss on either side.

    Source: Dugas, Bengio, Bélisle, Nadeau and Garcia (2001); torch.nn.functional.softplus without its threshold.

    >>> from dgrr.tape import Tape, ops
    >>> ops.softplus(Tape().leaf([0.0, 100.0])).numpy().round(4)
    array([  0.6931, 100.    ])
    """
    ...


def _along_silu(d: Any, x: Any) -> Any:
    """``d (s + x s (1 - s))`` with s the sigmoid."""
    s = sigmoid(x)
    return mul(d, add(s, mul(x, sub(s, mul(s, s)))))


@pointwise_op(kernels.silu, _along_silu, work=30)
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


GELUS = {"none": kernels.gelu, "tanh": kernels.gelu_tanh}
"""By the word that chooses."""


def _gelus(make: Make) -> list[Sample]:
    arrays = [s.arrays for s in unary(SPECIAL)(make)]
    return [Sample(a, {"approximate": how}) for how in GELUS for a in arrays]


@op(
    kinds={"approximate": one_of(*GELUS)},
    lower=lambda x, approximate: elementwise(GELUS[approximate], x, work=45),
    along=(lambda d, x, approximate: mul(d, _gelu_slope(x, approximate)),),
    reference=lambda x, approximate="none": read(GELUS[approximate])(x),
    samples=_gelus,
    batch_axis={"x": 0},
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


def _with(argument: str, *values: float) -> Samples:
    """Ordinary and special values with the default and with other values of an attribute."""

    def samples(make: Make) -> list[Sample]:
        special = np.array(SPECIAL).astype(make.dtype)
        return [*unary(SPECIAL)(make), *(Sample((x,), {argument: v}) for v in values for x in (make(3, 7), special))]

    return samples


@pointwise_op(
    kernels.leaky,
    lambda d, x, negative_slope: leaky(d, x, negative_slope),
    kinds={"negative_slope": FINITE},
    lower=lambda x, negative_slope: elementwise(kernels.leaky, x, x, attrs=(float(negative_slope),)),
    reference=lambda x, negative_slope=0.01: np.where(x > 0, x, x * x.dtype.type(negative_slope)),
    samples=_with("negative_slope", 0.3, 0.0, -1.0),
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


@pointwise_op(
    kernels.leaky,
    lambda d, x, slope: leaky(d, x, slope),
    NO_GRAD,
    samples=lambda make: [Sample((make(4, 5), make(4, 5)), {"slope": slope}) for slope in (0.1, -0.5)],
    private=True,
)
def leaky(g: Var[F, *S], x: Var[F, *S], slope: float) -> Var[F, *S]:
    """``g`` where ``x > 0``, else ``g * slope``: the gradient of leaky_relu."""
    ...


@pointwise_op(
    kernels.elu,
    lambda d, x, alpha: mul(d, elu_slope(x, alpha)),
    kinds={"alpha": FINITE},
    samples=_with("alpha", 0.5, 0.0),
    instead={"alpha": "ops.relu(x) + alpha * ops.expm1(ops.minimum(x, 0.0))"},
    work=30,
)
def elu(x: Var[F, *S], alpha: float = 1.0) -> Var[F, *S]:
    """``x`` where it is positive, else ``alpha * (e ** x - 1)``. The gradient at 0 is ``alpha``.

    Source: Clevert, Unterthiner and Hochreiter (2016); torch.nn.functional.elu.

    >>> from dgrr.tape import Tape, ops
    >>> ops.elu(Tape().leaf([2.0, -1.0])).numpy().round(4)
    array([ 2.    , -0.6321])
    """
    ...


@pointwise_op(
    kernels.elu_slope,
    lambda d, x, alpha: mul(d, where_positive(elu_slope(x, alpha), neg(x))),
    samples=lambda make: [Sample(s.arrays, {"alpha": 0.5, **s.attrs}) for s in unary(SPECIAL)(make)],
    work=25,
    private=True,
)
def elu_slope(x: Var[F, *S], alpha: float) -> Var[F, *S]:
    """1 where ``x > 0``, else ``alpha * e ** x``: the slope of elu."""
    ...


@pointwise_op(kernels.over, lambda d, x, c: over(d, c), private=True, samples=_with("c", 0.5, -3.0))
def over(x: Var[F, *S], c: float = 1.0) -> Var[F, *S]:
    """``x / c``: what celu is a function of."""
    ...


@pointwise_op(
    kernels.celu,
    lambda d, x, alpha: mul(d, elu_slope(over(x, alpha), 1.0)),
    kinds={"alpha": POSITIVE},
    samples=_with("alpha", 0.5, 3.0),
    instead={"alpha": "ops.relu(x) + alpha * ops.expm1(ops.minimum(x / alpha, 0.0))"},
    work=30,
)
def celu(x: Var[F, *S], alpha: float = 1.0) -> Var[F, *S]:
    """``x`` where it is positive, else ``alpha * (e ** (x / alpha) - 1)``, whose slope at 0 is 1 for every alpha.

    Source: Barron (2017), Continuously differentiable exponential linear units; torch.nn.functional.celu.

    >>> from dgrr.tape import Tape, ops
    >>> ops.celu(Tape().leaf([2.0, -1.0]), 2.0).numpy().round(4)
    array([ 2.    , -0.7869])
    """
    ...


@pointwise_op(kernels.selu, lambda d, x: mul(d, scale(elu_slope(x, SELU_ALPHA), SELU_SCALE)), work=30)
def selu(x: Var[F, *S]) -> Var[F, *S]:
    """``λ x`` where x is positive, else ``λ α (e ** x - 1)``, with λ = 1.0507… and α = 1.6733….

    Source: Klambauer, Unterthiner, Mayr and Hochreiter (2017); torch.nn.functional.selu.

    >>> from dgrr.tape import Tape, ops
    >>> ops.selu(Tape().leaf([2.0, -1.0])).numpy().round(4)
    array([ 2.1014, -1.1113])
    """
    ...


@pointwise_op(kernels.relu6, lambda d, x: where_inside(d, x, 0.0, 6.0), at=[(6.0, 5.5, 7.0)])
def relu6(x: Var[F, *S]) -> Var[F, *S]:
    """``min(6, max(0, x))``; NaN stays. The gradient at 0 and at 6 is 0.

    Source: Krizhevsky (2010); torch.nn.functional.relu6.

    >>> from dgrr.tape import Tape, ops
    >>> ops.relu6(Tape().leaf([-1.0, 2.0, 8.0])).numpy()
    array([0., 2., 6.])
    """
    ...


def _along_hardswish(d: Any, x: Any) -> Any:
    gate = scale(clamp(shift(x, 3.0), 0.0, 6.0), SIXTH)
    return mul(d, add(gate, where_inside(scale(x, SIXTH), x, -3.0, 3.0)))


@pointwise_op(kernels.hardswish, _along_hardswish, at=[(3.0, -3.0, 4.0, -4.0)])
def hardswish(x: Var[F, *S]) -> Var[F, *S]:
    """``x * relu6(x + 3) / 6``; NaN at -inf.

    Source: Howard and others (2019), Searching for MobileNetV3; torch.nn.functional.hardswish.

    >>> from dgrr.tape import Tape, ops
    >>> ops.hardswish(Tape().leaf([-4.0, 1.5, 4.0])).numpy()
    array([-0.   ,  1.125,  4.   ])
    """
    ...


def _along_mish(d: Any, x: Any) -> Any:
    """``d (t + x s (1 - t²))`` with s the sigmoid and t the hyperbolic tangent of softplus."""
    t = tanh(softplus(x))
    return mul(d, add(t, mul(mul(x, sigmoid(x)), shift(neg(square(t)), 1.0))))


@pointwise_op(kernels.mish, _along_mish, work=80)
def mish(x: Var[F, *S]) -> Var[F, *S]:
    """``x * tanh(softplus(x))``; NaN at -inf.

    Source: Misra (2020); torch.nn.functional.mish.

    >>> from dgrr.tape import Tape, ops
    >>> ops.mish(Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.8651])
    """
    ...


@pointwise_op(kernels.softsign, lambda d, x: mul(d, square(inv(shift(absolute(x), 1.0)))))
def softsign(x: Var[F, *S]) -> Var[F, *S]:
    """``x / (1 + |x|)``; NaN at infinities.

    Source: Glorot and Bengio (2010); torch.nn.functional.softsign.

    >>> from dgrr.tape import Tape, ops
    >>> ops.softsign(Tape().leaf([1.0, -3.0])).numpy()
    array([ 0.5 , -0.75])
    """
    ...


@pointwise_op(kernels.logsigmoid, lambda d, x: mul(d, sigmoid(neg(x))), at=[(1000.0, -1000.0, 30.0, -30.0)], work=50)
def logsigmoid(x: Var[F, *S]) -> Var[F, *S]:
    """``log(1 / (1 + e ** -x))``, without overflow or loss on either side.

    Source: torch.nn.functional.logsigmoid.

    >>> from dgrr.tape import Tape, ops
    >>> ops.logsigmoid(Tape().leaf([0.0, -100.0])).numpy().round(4)
    array([  -0.6931, -100.    ])
    """
    ...

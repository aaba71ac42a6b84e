"""Formulas of the smooth functions of one number, beyond those of the elementwise kernels, each a kernel."""

from ....numerics.engine.numba_internals import formula
from ....numerics.math import elementary
from ....numerics.simd import minmax, operations
from ....numerics.simd.operations import Number, constant, select
from ....numerics.simd.pointwise import pointwise

ROOT_HALF = 0.7071067811865476
"""√½."""
ROOT_TWO_OVER_PI = 0.7978845608028654
"""√(2 / pi)."""
SELU_SCALE = 1.0507009873554805
"""λ of selu (Klambauer and others, 2017)."""
SELU_ALPHA = 1.6732632423543772
"""α of selu."""
SELU_NEGATIVE = 1.7580993408473768
"""λ α, rounded once."""
GELU_CUBIC = 0.044715
"""The coefficient of x³ in the approximation of gelu (Hendrycks and Gimpel, 2016)."""

log1p = pointwise(elementary.log1p, home=__name__)
expm1 = pointwise(elementary.expm1, home=__name__)
erf = pointwise(elementary.erf, home=__name__)
softplus = pointwise(elementary.softplus, home=__name__)
broken_power = pointwise(elementary.power, name="broken_power", home=__name__, numbers=1)


@pointwise(numbers=1)
def shift(x: Number, c: Number) -> Number:
    """``x + c``."""
    return x + c


@pointwise
def inv(x: Number) -> Number:
    """``1 / x``."""
    return constant(x, 1.0) / x


@pointwise
def rsqrt(x: Number) -> Number:
    """``1 / sqrt(x)``: NaN for x < 0, infinite with the sign of a zero."""
    return constant(x, 1.0) / operations.sqrt(x)


@pointwise
def silu(x: Number) -> Number:
    """``x sigmoid(x)``."""
    return x * elementary.sigmoid(x)


@pointwise
def gelu(x: Number) -> Number:
    """``x / 2 (1 + erf(x √½))``."""
    return (constant(x, 0.5) * x) * (constant(x, 1.0) + elementary.erf(x * constant(x, ROOT_HALF)))


@pointwise
def gelu_tanh(x: Number) -> Number:
    """``x / 2 (1 + tanh(√(2 / pi) (x + 0.044715 x³)))``."""
    inner = constant(x, ROOT_TWO_OVER_PI) * (x + constant(x, GELU_CUBIC) * (x * x * x))
    return (constant(x, 0.5) * x) * (constant(x, 1.0) + elementary.tanh(inner))


@pointwise(numbers=1)
def elu(x: Number, alpha: Number) -> Number:
    """x where x > 0, else ``alpha (e ** x - 1)``."""
    return select(x > constant(x, 0.0), x, elementary.expm1(x) * alpha)


@pointwise(numbers=1)
def elu_slope(x: Number, alpha: Number) -> Number:
    """1 where x > 0, else ``alpha e ** x``."""
    return select(x > constant(x, 0.0), constant(x, 1.0), elementary.exp(x) * alpha)


@pointwise(numbers=1)
def leaky(g: Number, x: Number, slope: Number) -> Number:
    """g where x > 0, else ``g slope``."""
    return select(x > constant(x, 0.0), g, g * slope)


@pointwise(numbers=1)
def over(x: Number, c: Number) -> Number:
    """``x / c``."""
    return x / c


@pointwise(numbers=1)
def celu(x: Number, alpha: Number) -> Number:
    """x where x > 0, else ``alpha (e ** (x / alpha) - 1)``."""
    return select(x > constant(x, 0.0), x, elementary.expm1(x / alpha) * alpha)


@pointwise
def selu(x: Number) -> Number:
    """``λ x`` where x > 0, else ``λ α (e ** x - 1)``."""
    below = elementary.expm1(x) * constant(x, SELU_NEGATIVE)
    return select(x > constant(x, 0.0), x * constant(x, SELU_SCALE), below)


@formula
def to_six(x: Number) -> Number:
    """``min(6, max(0, x))``."""
    return minmax.smaller(minmax.larger(x, constant(x, 0.0)), constant(x, 6.0))


relu6 = pointwise(to_six, name="relu6", home=__name__)


@pointwise
def hardswish(x: Number) -> Number:
    """``x (min(6, max(0, x + 3)) / 6)``."""
    return x * (to_six(x + constant(x, 3.0)) / constant(x, 6.0))


@pointwise
def mish(x: Number) -> Number:
    """``x tanh(log(1 + e ** x))``."""
    return x * elementary.tanh(elementary.softplus(x))


@pointwise
def softsign(x: Number) -> Number:
    """``x / (1 + |x|)``."""
    return x / (constant(x, 1.0) + abs(x))


@pointwise
def logsigmoid(x: Number) -> Number:
    """``-log(1 + e ** -x)``."""
    return -elementary.softplus(-x)

"""Kernels of the smooth functions of one number, beyond those of the elementwise kernels.

All read and write contiguous arrays; ``ints`` is ``[number of elements, attribute…]``.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.math import elementary
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import constant, float_of, select, sqrt
from ....numerics.simd.vectors import combine, transform

ROOT_HALF = 0.7071067811865476
"""√½."""
ROOT_TWO_OVER_PI = 0.7978845608028654
"""√(2 / pi)."""
GELU_CUBIC = 0.044715
"""The coefficient of x³ in the approximation of gelu (Hendrycks and Gimpel, 2016)."""


@inlined
def _unary(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    return vector(table, 0, start, n), vector(table, 1, start, n)


@inlined
def _transformed(function, table, ints, part, parts):
    out, x = _unary(table, ints, part, parts)
    transform(function, out, x)
    return 0


@inlined
def _transformed_with(function, table, ints, part, parts):
    """With a number: the float in the first attribute."""
    out, x = _unary(table, ints, part, parts)
    transform(function, out, x, real(table, float_of(word(ints, 1))))
    return 0


@kernel
def log1p(table, ints, part, parts):
    """``out = ln(1 + x)``."""
    return _transformed(elementary.log1p, table, ints, part, parts)


@kernel
def expm1(table, ints, part, parts):
    """``out = e ** x - 1``."""
    return _transformed(elementary.expm1, table, ints, part, parts)


@kernel
def erf(table, ints, part, parts):
    """``out = erf x``."""
    return _transformed(elementary.erf, table, ints, part, parts)


@kernel
def softplus(table, ints, part, parts):
    """``out = ln(1 + e ** x)``."""
    return _transformed(elementary.softplus, table, ints, part, parts)


@kernel
def broken_power(table, ints, part, parts):
    """``out = x ** exponent`` for an exponent that is not whole; ints: n, exponent."""
    return _transformed_with(elementary.power, table, ints, part, parts)


@inlined
def _shift(x, c):
    return x + c


@kernel
def shift(table, ints, part, parts):
    """``out = x + c``; ints: n, c."""
    return _transformed_with(_shift, table, ints, part, parts)


@inlined
def _inv(x):
    return constant(x, 1.0) / x


@kernel
def inv(table, ints, part, parts):
    """``out = 1 / x``."""
    return _transformed(_inv, table, ints, part, parts)


@kernel
def rsqrt(table, ints, part, parts):
    """``out = 1 / sqrt(x)``: NaN for x < 0, infinite with the sign of a zero."""
    out, x = _unary(table, ints, part, parts)
    one = real(table, 1.0)
    for i in range(out.size):
        out[i] = one / sqrt(x[i])
    return 0


@inlined
def _silu(x):
    return x * elementary.sigmoid(x)


@kernel
def silu(table, ints, part, parts):
    """``out = x sigmoid(x)``."""
    return _transformed(_silu, table, ints, part, parts)


@inlined
def _gelu(x, root_half):
    return (constant(x, 0.5) * x) * (constant(x, 1.0) + elementary.erf(x * root_half))


@kernel
def gelu(table, ints, part, parts):
    """``out = x / 2 (1 + erf(x √½))``."""
    out, x = _unary(table, ints, part, parts)
    transform(_gelu, out, x, real(table, ROOT_HALF))
    return 0


@inlined
def _gelu_tanh(x, root, cubic):
    inner = root * (x + cubic * (x * x * x))
    return (constant(x, 0.5) * x) * (constant(x, 1.0) + elementary.tanh(inner))


@kernel
def gelu_tanh(table, ints, part, parts):
    """``out = x / 2 (1 + tanh(√(2 / pi) (x + 0.044715 x³)))``."""
    out, x = _unary(table, ints, part, parts)
    transform(_gelu_tanh, out, x, real(table, ROOT_TWO_OVER_PI), real(table, GELU_CUBIC))
    return 0


@inlined
def _elu(x, alpha):
    return select(x > constant(x, 0.0), x, elementary.expm1(x) * alpha)


@kernel
def elu(table, ints, part, parts):
    """``out = x`` where x > 0, else ``alpha (e ** x - 1)``; ints: n, alpha."""
    return _transformed_with(_elu, table, ints, part, parts)


@inlined
def _elu_slope(x, alpha):
    return select(x > constant(x, 0.0), constant(x, 1.0), elementary.exp(x) * alpha)


@kernel
def elu_slope(table, ints, part, parts):
    """``out = 1`` where x > 0, else ``alpha e ** x``; ints: n, alpha."""
    return _transformed_with(_elu_slope, table, ints, part, parts)


@inlined
def _leaky(g, x, slope):
    return select(x > constant(x, 0.0), g, g * slope)


@kernel
def leaky(table, ints, part, parts):
    """``out = g`` where x > 0, else ``g slope``; arrays: out, g, x; ints: n, slope."""
    out, g = _unary(table, ints, part, parts)
    start, n = share(word(ints, 0), part, parts)
    combine(_leaky, out, g, vector(table, 2, start, n), real(table, float_of(word(ints, 1))))
    return 0

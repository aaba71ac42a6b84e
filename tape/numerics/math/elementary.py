"""exp, log, tanh, sigmoid, log1p, expm1, erf and powers of a float32, a float64 or a vector of either.

Each is a branch-free tree of ``+ - * /``, fma, comparisons, selections and bit operations, the same for all types; only
the constants differ (`coefficients`). So every machine computes the same bits, in every lane. Kernels inline it; Python
runs the same text on numpy's numbers and arrays, which is the reference that the kernels are held to.
"""

import numpy as np

from ..engine.numba_internals import formula
from ..simd.operations import (
    Number,
    add,
    bits_of,
    constant,
    constants,
    float_of,
    fma,
    lshr,
    polynomial,
    select,
    shl,
    sub,
)


@formula
def exp(x: Number) -> Number:
    """``e ** x``: ``2**n * e**r`` with n whole and ``|r| <= ln(2)/2``."""
    c = constants(x)
    x = select(x > c.exp_overflow, c.exp_overflow, x)
    x = select(x < c.exp_zero, c.exp_zero, x)
    rounded = fma(x, c.log2_e, c.rounder)
    n = rounded - c.rounder
    high = fma(n, -c.ln2_high, x)
    r = fma(n, -c.ln2_low, high)
    return raised(rounded, high, n * -c.ln2_low, r)


@formula
def exp_over_two(x: Number) -> Number:
    """``e ** x / 2``, which does not overflow before the half itself does."""
    c, one = constants(x), constant(x, 1.0)
    most = c.exp_overflow + one
    x = select(x > most, most, x)
    x = select(x < c.exp_zero, c.exp_zero, x)
    rounded = fma(x, c.log2_e, c.rounder)
    n = rounded - c.rounder
    high = fma(n, -c.ln2_high, x)
    r = fma(n, -c.ln2_low, high)
    return raised(rounded - one, high, n * -c.ln2_low, r)


@formula
def raised(rounded: Number, high: Number, low: Number, r: Number) -> Number:
    """``2**n * e**(high + low)``, where ``r`` is ``high + low`` rounded and n is ``rounded`` less the rounder."""
    c, one = constants(r), constant(r, 1.0)
    tail = fma(r * r, polynomial(r, c.exp), low)
    y = one + high
    y = y + (((one - y) + high) + tail)
    # 2**n in two factors, since n may pass the exponent's range; their exponent fields sum to n + 2 * bias.
    fields = add(sub(bits_of(rounded), bits_of(c.rounder)), 2 * c.bias)
    first = lshr(fields, 1)
    return (y * float_of(shl(first, c.mantissa))) * float_of(shl(sub(fields, first), c.mantissa))


@formula
def expm1(x: Number) -> Number:
    """``e ** x - 1``: twice ``(2**(n - 1) - 1/2) + 2**(n - 1) (e**r - 1)``."""
    c, half = constants(x), constant(x, 0.5)
    given = x
    x = select(x > c.exp_overflow, c.exp_overflow, x)
    x = select(x < constant(x, -60.0), constant(x, -60.0), x)
    rounded = fma(x, c.log2_e, c.rounder)
    n = rounded - c.rounder
    high = fma(n, -c.ln2_high, x)
    r = fma(n, -c.ln2_low, high)
    tail = fma(r * r, polynomial(r, c.exp), n * -c.ln2_low)
    scale = float_of(shl(add(sub(bits_of(rounded), bits_of(c.rounder)), c.bias - 1), c.mantissa))
    whole = scale - half
    lost = (scale - whole) - half
    part = scale * high
    y = whole + part
    y = y + (((whole - y) + part) + fma(scale, tail, lost))
    return select(abs(given) < c.tiny, given, y + y)


@formula
def split(x: Number) -> tuple[Number, Number]:
    """``(f, n)`` such that ``x = (1 + f) 2**n`` with n whole and ``1 + f`` in ``[√½, √2)``; for finite x > 0."""
    c, one, zero = constants(x), constant(x, 1.0), constant(x, 0.0)
    subnormal = x < c.smallest_normal
    bits = bits_of(select(subnormal, x * c.lift, x))
    above = add(bits, sub(bits_of(one), bits_of(c.root_half)))
    exponent = sub(lshr(above, c.mantissa), c.bias)
    f = float_of(sub(bits, shl(exponent, c.mantissa))) - one
    n = float_of(add(exponent, bits_of(c.rounder))) - c.rounder
    return f, n - select(subnormal, c.lift_exponent, zero)


@formula
def _log_of(f: Number, n: Number, more: Number) -> Number:
    """``n ln 2 + ln(1 + f) + more``."""
    c = constants(f)
    s = f / (f + constant(f, 2.0))
    z = s * s
    half_f = constant(f, 0.5) * f
    tail = fma(s, fma(z, polynomial(z, c.log), half_f * f), n * c.ln2_low)
    tail = fma(-half_f, f, tail) + more
    high = n * c.ln2_high
    y = high + f
    return y + (((high - y) + f) + tail)


@formula
def log(x: Number) -> Number:
    """``ln x``: ``n ln 2 + ln m`` with n whole and m in ``[√½, √2)``."""
    zero = constant(x, 0.0)
    f, n = split(x)
    y = select(x == constant(x, np.inf), x, _log_of(f, n, -zero))
    y = select(x == zero, constant(x, -np.inf), y)
    y = select(x < zero, constant(x, np.nan), y)
    return select(x != x, x, y)


@formula
def log_of_twice(x: Number) -> Number:
    """``ln(2 x)`` for x > 0, infinity and NaN, also where ``2 x`` overflows."""
    zero, one, infinity = constant(x, 0.0), constant(x, 1.0), constant(x, np.inf)
    f, n = split(x)
    return select(x < infinity, _log_of(f, n + one, -zero), x)


@formula
def log1p(x: Number) -> Number:
    """``ln(1 + x)``: the logarithm of the rounded sum, and what the rounding lost over it."""
    one, zero = constant(x, 1.0), constant(x, 0.0)
    total = one + x
    swapped = abs(x) > one
    lost = (select(swapped, x, one) - total) + select(swapped, one, x)
    f, n = split(total)
    y = _log_of(f, n, lost / total)
    y = select(x == zero, x, y)
    y = select(x == constant(x, np.inf), x, y)
    y = select(total == zero, constant(x, -np.inf), y)
    y = select(total < zero, constant(x, np.nan), y)
    return select(x != x, x, y)


@formula
def _log_pair(x: Number) -> tuple[Number, Number]:
    """``ln x`` as a sum of two numbers, good to about 2**-12 ULP; for finite x > 0."""
    c, two = constants(x), constant(x, 2.0)
    f, n = split(x)
    d = f + two
    d_low = (two - d) + f
    s = f / d
    s_low = fma(-s, d_low, fma(-s, d, f)) / d
    z = s * s
    z_low = fma(s, s, -z) + (s + s) * s_low
    q = z * polynomial(z, c.artanh)
    t = c.two_thirds + q
    t_low = ((c.two_thirds - t) + q) + c.two_thirds_low
    w = s * z
    w_low = fma(s, z, -w) + fma(s, z_low, s_low * z)
    v = w * t
    v_low = fma(w, t, -v) + fma(w, t_low, w_low * t)
    m = (s + s) + v
    m_low = (((s + s) - m) + v) + ((s_low + s_low) + v_low)
    high = n * c.ln2_high
    y = high + m
    y_low = ((high - y) + m) + fma(n, c.ln2_low, m_low)
    total = y + y_low
    return total, (y - total) + y_low


@formula
def power(x: Number, exponent: Number) -> Number:
    """``x ** exponent`` for a finite exponent that is not whole: ``e ** (exponent ln x)``, the logarithm a pair."""
    c, zero, infinity = constants(x), constant(x, 0.0), constant(x, np.inf)
    high, low = _log_pair(abs(x))
    product = high * exponent
    rest = fma(high, exponent, -product) + low * exponent
    rest = select(product > c.exp_overflow, zero, rest)
    rest = select(product < c.exp_zero, zero, rest)
    product = select(product > c.exp_overflow, c.exp_overflow, product)
    product = select(product < c.exp_zero, c.exp_zero, product)
    rounded = fma(product, c.log2_e, c.rounder)
    n = rounded - c.rounder
    first = fma(n, -c.ln2_high, product)
    second = fma(n, -c.ln2_low, rest)
    y = raised(rounded, first, second, first + second)
    y = select(x < zero, constant(x, np.nan), y)
    y = select(x == zero, select(exponent > constant(exponent, 0.0), zero, infinity), y)
    y = select(abs(x) == infinity, select(exponent > constant(exponent, 0.0), infinity, zero), y)
    return select(x != x, x, y)


@formula
def tanh(x: Number) -> Number:
    """``tanh x``: an odd polynomial below 5/8, above it ``1 - 2 / (e ** 2x + 1)``."""
    c, one, two = constants(x), constant(x, 1.0), constant(x, 2.0)
    a = abs(x)
    z = a * a
    small = fma(z * polynomial(z, c.tanh), a, a)
    large = one - two / (exp(a + a) + one)
    y = select(a < constant(x, 0.625), small, large)
    sign = sub(bits_of(x), bits_of(a))
    return float_of(add(bits_of(y), sign))


@formula
def sigmoid(x: Number) -> Number:
    """``1 / (1 + e ** -x)``, for negative x as ``e ** x / (1 + e ** x)``; the quotient is corrected once."""
    one = constant(x, 1.0)
    e = exp(-abs(x))
    total = one + e
    lost = (one - total) + e
    inverse = one / total
    part = select(x < constant(x, 0.0), e, one)
    y = part * inverse
    rest = fma(-y, lost, fma(-y, total, part))
    return fma(rest, inverse, y)


@formula
def erf(x: Number) -> Number:
    """The error function: an odd polynomial below 7/8, above it ``1 - e ** L(x)``."""
    c, one = constants(x), constant(x, 1.0)
    a = abs(x)
    small = fma(polynomial(a * a, c.erf_near), a, a)
    large = one - exp(polynomial(select(a > c.erf_one, c.erf_one, a), c.erf_far))
    y = select(a < constant(x, 0.875), small, large)
    sign = sub(bits_of(x), bits_of(a))
    return float_of(add(bits_of(y), sign))


@formula
def softplus(x: Number) -> Number:
    """``ln(1 + e ** x)``: ``max(x, 0) + ln(1 + e ** -|x|)``."""
    zero = constant(x, 0.0)
    return select(x < zero, zero, x) + log1p(exp(-abs(x)))

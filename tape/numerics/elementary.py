"""exp, log, tanh and sigmoid of a float32, a float64 or a vector of either, for use inside kernels.

Each is a branch-free tree of ``+ - * /``, fma, comparisons, selections and bit operations, the same for all
types; only the constants differ (`coefficients`). So every machine computes the same bits, in every lane.
"""

# numba's functions carry no types, and checkers miss the context argument that numba gives to intrinsics.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,call-arg,var-annotated"
# pyright: basic, reportCallIssue=false
import numpy as np
from numba import njit

from .generic import add, bits_of, constant, constants, float_of, fma, lshr, polynomial, select, shl, sub

elementary = njit(forceinline=True, error_model="numpy")


@elementary
def exp(x):
    """``e ** x``: ``2**n * e**r`` with n whole and ``|r| <= ln(2)/2``."""
    c, one = constants(x), constant(x, 1.0)
    x = select(x > c.exp_overflow, c.exp_overflow, x)
    x = select(x < c.exp_zero, c.exp_zero, x)
    rounded = fma(x, c.log2_e, c.rounder)
    n = rounded - c.rounder
    high = fma(n, -c.ln2_high, x)
    r = fma(n, -c.ln2_low, high)
    tail = fma(r * r, polynomial(r, c.exp), n * -c.ln2_low)
    y = one + high
    y = y + (((one - y) + high) + tail)
    # 2**n in two factors, since n may pass the exponent's range; their exponent fields sum to n + 2 * bias.
    fields = add(sub(bits_of(rounded), bits_of(c.rounder)), 2 * c.bias)
    first = lshr(fields, 1)
    return (y * float_of(shl(first, c.mantissa))) * float_of(shl(sub(fields, first), c.mantissa))


@elementary
def log(x):
    """``ln x``: ``n ln 2 + ln m`` with n whole and m in ``[√½, √2)``."""
    c, one, zero = constants(x), constant(x, 1.0), constant(x, 0.0)
    subnormal = x < c.smallest_normal
    bits = bits_of(select(subnormal, x * c.lift, x))
    above = add(bits, sub(bits_of(one), bits_of(c.root_half)))
    exponent = sub(lshr(above, c.mantissa), c.bias)
    f = float_of(sub(bits, shl(exponent, c.mantissa))) - one
    n = float_of(add(exponent, bits_of(c.rounder))) - c.rounder
    n = n - select(subnormal, c.lift_exponent, zero)
    s = f / (f + constant(x, 2.0))
    z = s * s
    half_f = constant(x, 0.5) * f
    tail = fma(s, fma(z, polynomial(z, c.log), half_f * f), n * c.ln2_low)
    tail = fma(-half_f, f, tail)
    high = n * c.ln2_high
    y = high + f
    y = y + (((high - y) + f) + tail)
    y = select(x == constant(x, np.inf), x, y)
    y = select(x == zero, constant(x, -np.inf), y)
    y = select(x < zero, constant(x, np.nan), y)
    return select(x != x, x, y)


@elementary
def tanh(x):
    """``tanh x``: an odd polynomial below 5/8, above it ``1 - 2 / (e ** 2x + 1)``."""
    c, one, two = constants(x), constant(x, 1.0), constant(x, 2.0)
    a = abs(x)
    z = a * a
    small = fma(z * polynomial(z, c.tanh), a, a)
    large = one - two / (exp(a + a) + one)
    y = select(a < constant(x, 0.625), small, large)
    sign = sub(bits_of(x), bits_of(a))
    return float_of(add(bits_of(y), sign))


@elementary
def sigmoid(x):
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

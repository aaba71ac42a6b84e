"""Inverse trigonometric functions, hyperbolic ones and their inverses, of a float32, a float64 or a vector of either.

As `elementary`: branch-free trees of the same operations for all types, in which only the constants differ.
"""

import numpy as np

from ..engine.numba_internals import formula
from ..simd.operations import (
    Mask,
    Number,
    add,
    bits_of,
    constant,
    constants,
    float_of,
    fma,
    polynomial,
    select,
    sqrt,
    sub,
)
from .elementary import exp_over_two, expm1, log1p, log_of_twice

LARGE = 268435456.0
"""2**28: from here on ``x² + 1`` and ``x² - 1`` are x² to within half an ULP of the square root."""
FAR = 1152921504606846976.0
"""2**60: the angle of a tangent from here on rounds to pi / 2."""
SMALL_TANGENT, LARGE_TANGENT = 0.4140625, 2.4140625
"""About the tangents of pi / 8 and 3 pi / 8, and exact in both types."""


@formula
def signed(y: Number, x: Number) -> Number:
    """``y``, whose sign bit is not set, with the sign bit of x."""
    return float_of(add(bits_of(y), sub(bits_of(x), bits_of(abs(x)))))


@formula
def _from(eighths: Number, part: Number, tail: Number) -> Number:
    """``eighths * pi / 4 + (part + tail)``, for a part that is smaller than the first term, or that being 0."""
    c, quarter = constants(part), constant(part, 0.5)
    first = quarter * c.half_pi
    base = eighths * first
    base_low = fma(eighths, first, -base) + eighths * (quarter * c.half_pi_middle)
    y = base + part
    return y + ((((base - y) + part) + base_low) + tail)


@formula
def _sum(a: Number, b: Number) -> tuple[Number, Number]:
    """``a + b`` rounded, and what the rounding lost (Knuth)."""
    total = a + b
    second = total - a
    return total, (a - (total - second)) + (b - second)


@formula
def _angle(y: Number, x: Number, turn: Number, eighths: Number) -> Number:
    """The angle of the point (x, y), both at least 0 and not both 0, times ``turn`` and from ``eighths`` pi / 4 on."""
    zero, one, two = constant(x, 0.0), constant(x, 1.0), constant(x, 2.0)
    steep, slanted = y > x * constant(x, LARGE_TANGENT), y > x * constant(x, SMALL_TANGENT)
    difference, difference_low = _sum(y, -x)
    total, total_low = _sum(y, x)
    over = select(steep, -x, select(slanted, difference, y))
    under = select(steep, y, select(slanted, total, x))
    u = over / under
    low = select(steep, zero, select(slanted, fma(-u, total_low, difference_low), zero))
    lost = (fma(-u, under, over) + low) / under
    z = u * u
    tail = fma(u, z * polynomial(z, constants(x).arctan), lost)
    known = select(steep, two, select(slanted, one, zero))
    return _from(eighths + turn * known, turn * u, turn * tail)


@formula
def atan(x: Number) -> Number:
    """``atan x``: the angle of the point (1, x)."""
    zero, one = constant(x, 0.0), constant(x, 1.0)
    a = abs(x)
    y = _angle(select(a > constant(x, FAR), constant(x, FAR), a), one, one, zero)
    return select(x != x, x, signed(y, x))


@formula
def atan2(y: Number, x: Number) -> Number:
    """The angle of the point (x, y): infinite coordinates count as 1 beside finite ones, which then are 0."""
    zero, one, infinity = constant(x, 0.0), constant(x, 1.0), constant(x, np.inf)
    a, b = abs(y), abs(x)
    far = select(a == infinity, one, select(b == infinity, one, zero)) != zero
    a = select(far, select(a == infinity, one, zero), a)
    b = select(far, select(b == infinity, one, zero), b)
    c = constants(x)
    factor = select(a + b == infinity, constant(x, 0.25), select(a + b < one, c.lift * c.lift, one))
    a, b = a * factor, b * factor  # no sum overflows, and no rounding error of a quotient vanishes
    b = select(a + b == zero, one, b)
    behind = float_of(sub(bits_of(x), sub(bits_of(abs(x)), bits_of(one)))) < zero
    angle = _angle(a, b, select(behind, -one, one), select(behind, constant(x, 4.0), zero))
    result = signed(angle, y)
    return select(x != x, x, select(y != y, y, result))


@formula
def _arc(x: Number) -> tuple[Number, Number, Mask]:
    """``(main, tail, far)``: ``asin |x|`` is ``main + tail``, or for |x| >= 1/2 pi / 2 less that."""
    zero, half, one = constant(x, 0.0), constant(x, 0.5), constant(x, 1.0)
    a = abs(x)
    w = (one - a) * half
    root = sqrt(w)
    far = half <= a
    t, z = select(far, root, a), select(far, w, a * a)
    lost = fma(-root, root, w) / select(root == zero, one, root + root)
    tail = t * (z * polynomial(z, constants(x).arcsine)) + select(far, lost, zero)
    twice = select(far, constant(x, 2.0), one)
    return twice * t, twice * tail, far


@formula
def asin(x: Number) -> Number:
    """``asin x``: an odd polynomial below 1/2, above it ``pi / 2 - 2 asin(sqrt((1 - x) / 2))``."""
    zero, two = constant(x, 0.0), constant(x, 2.0)
    main, tail, far = _arc(x)
    y = _from(select(far, two, zero), select(far, -main, main), select(far, -tail, tail))
    return select(x != x, x, signed(y, x))


@formula
def acos(x: Number) -> Number:
    """``acos x``: ``pi / 2 - asin x`` below 1/2 in size, else ``2 asin(sqrt((1 - |x|) / 2))``, or pi less that."""
    zero, two, four = constant(x, 0.0), constant(x, 2.0), constant(x, 4.0)
    main, tail, far = _arc(x)
    negative = x < zero
    eighths = select(far, select(negative, four, zero), two)
    minus = select(far, select(negative, -two, two), select(negative, two, -two)) < zero
    return select(x != x, x, _from(eighths, select(minus, -main, main), select(minus, -tail, tail)))


@formula
def sinh(x: Number) -> Number:
    """``sinh x``: by expm1 below 1, else ``e**x / 2 - 1 / (2 e**x)``."""
    one, half = constant(x, 1.0), constant(x, 0.5)
    a = abs(x)
    e = expm1(select(a < one, a, one))
    h = exp_over_two(a)
    return signed(select(a < one, half * ((e + e) - (e * e) / (e + one)), h - constant(x, 0.25) / h), x)


@formula
def cosh(x: Number) -> Number:
    """``cosh x``: ``e**x / 2 + 1 / (2 e**x)``."""
    h = exp_over_two(abs(x))
    return h + constant(x, 0.25) / h


@formula
def asinh(x: Number) -> Number:
    """``asinh x``: ``log1p(a + a² / (1 + sqrt(a² + 1)))``, or for large a ``log(2 a)``."""
    one, a = constant(x, 1.0), abs(x)
    large = a > constant(x, LARGE)
    b = select(large, one, a)
    square = b * b
    y = log1p(b + square / (one + sqrt(square + one)))
    return signed(select(large, log_of_twice(a), y), x)


@formula
def acosh(x: Number) -> Number:
    """``acosh x``: ``log1p(t + sqrt(t (t + 2)))`` with ``t = x - 1``, or for large x ``log(2 x)``; NaN below 1."""
    one, two = constant(x, 1.0), constant(x, 2.0)
    large = x > constant(x, LARGE)
    t = select(large, one, x) - one
    y = select(large, log_of_twice(x), log1p(t + sqrt(t * (t + two))))
    return select(x < one, constant(x, np.nan), y)


@formula
def atanh(x: Number) -> Number:
    """``atanh x``: half of ``log1p(2 a / (1 - a))``; infinite at 1, NaN above."""
    one, a = constant(x, 1.0), abs(x)
    return signed(constant(x, 0.5) * log1p((a + a) / (one - a)), x)

"""The other elementary functions, slow and obvious: the same trees as the kernels', in numpy scalars.

The compiled functions must give these bits. Nothing is shared with them but the table of constants.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from ...numerics.coefficients import FLOAT64, TWO_OVER_PI, Constants
from ...numerics.math.reference import Reals, elementwise, exp_of, fma, log_terms, polynomial, raised, scaled, split


def _log1p(x: Any, real: Any, c: Constants) -> Any:
    if x == 0 or np.isnan(x) or x == np.inf:
        return x
    if x <= -1:
        return real(-np.inf if x == -1 else np.nan)
    total = real(1) + x
    lost = (x - total) + real(1) if abs(x) > 1 else (real(1) - total) + x
    high, f, tail = log_terms(total, real, c)
    tail = tail + lost / total
    y = high + f
    return y + (((high - y) + f) + tail)


@elementwise
def log1p(x: Any, real: Any, c: Constants) -> Any:
    """``ln(1 + x)`` of every element of a float32 or float64 array; the same shape and dtype."""
    return _log1p(x, real, c)


@elementwise
def softplus(x: Any, real: Any, c: Constants) -> Any:
    """``ln(1 + e ** x)`` of every element of a float32 or float64 array; the same shape and dtype."""
    return (real(0) if x < 0 else x) + _log1p(exp_of(-abs(x), real, c), real, c)


def _expm1(x: Any, real: Any, c: Constants) -> Any:
    if np.isnan(x) or abs(x) < c.tiny:
        return x
    x = min(max(x, real(-60)), c.exp_overflow)
    n = fma(x, c.log2_e, c.rounder) - c.rounder
    high = fma(n, -c.ln2_high, x)
    r = fma(n, -c.ln2_low, high)
    tail = fma(r * r, polynomial(r, c.exp), n * -c.ln2_low)
    scale = scaled(real(1), int(n) - 1)
    whole = scale - real(0.5)
    lost = (scale - whole) - real(0.5)
    part = scale * high
    y = whole + part
    y = y + (((whole - y) + part) + fma(scale, tail, lost))
    return y + y


@elementwise
def expm1(x: Any, real: Any, c: Constants) -> Any:
    """``e ** x - 1`` of every element of a float32 or float64 array; the same shape and dtype."""
    return _expm1(x, real, c)


def elu(x: Reals, alpha: float) -> Reals:
    """``x`` where it is positive, else ``alpha (e ** x - 1)``."""
    with np.errstate(all="ignore"):
        return np.where(x > 0, x, expm1(x) * x.dtype.type(alpha))


def _erf(x: Any, real: Any, c: Constants) -> Any:
    a = abs(x)
    if a < 0.875:
        y = fma(polynomial(a * a, c.erf_near), a, a)
    else:
        y = real(1) - exp_of(polynomial(np.minimum(a, c.erf_one), c.erf_far), real, c)
    return np.copysign(y, x)


@elementwise
def erf(x: Any, real: Any, c: Constants) -> Any:
    """The error function of every element of a float32 or float64 array; the same shape and dtype."""
    return _erf(x, real, c)


def _log_pair(x: Any, real: Any, c: Constants) -> tuple[Any, Any]:
    """``ln x`` for finite x > 0 as the sum of two numbers."""
    f, n = split(x, real, c)
    two = real(2)
    d = f + two
    s = f / d
    s_low = fma(-s, (two - d) + f, fma(-s, d, f)) / d
    z = s * s
    z_low = fma(s, s, -z) + (s + s) * s_low
    q = z * polynomial(z, c.artanh)
    t = c.two_thirds + q
    t_low = ((c.two_thirds - t) + q) + c.two_thirds_low
    cube = s * z
    cube_low = fma(s, z, -cube) + fma(s, z_low, s_low * z)
    v = cube * t
    v_low = fma(cube, t, -v) + fma(cube, t_low, cube_low * t)
    m = (s + s) + v
    m_low = (((s + s) - m) + v) + ((s_low + s_low) + v_low)
    high = n * c.ln2_high
    y = high + m
    y_low = ((high - y) + m) + fma(n, c.ln2_low, m_low)
    total = y + y_low
    return total, (y - total) + y_low


def _power(x: Any, exponent: Any, real: Any, c: Constants) -> Any:
    if np.isnan(x):
        return x
    if x == 0 or np.isinf(x):
        return real(0 if (x == 0) == (exponent > 0) else np.inf)
    if x < 0:
        return real(np.nan)
    high, low = _log_pair(x, real, c)
    product = high * exponent
    rest = fma(high, exponent, -product) + low * exponent
    if not c.exp_zero <= product <= c.exp_overflow:
        product, rest = min(max(product, c.exp_zero), c.exp_overflow), real(0)
    n = fma(product, c.log2_e, c.rounder) - c.rounder
    first, second = fma(n, -c.ln2_high, product), fma(n, -c.ln2_low, rest)
    return raised(int(n), first, second, first + second, c)


def power(x: Reals, exponent: float) -> Reals:
    """``x ** exponent`` for a finite exponent that is not whole; the same shape and dtype."""
    rounded = x.dtype.type(exponent)
    return elementwise(lambda v, real, c: _power(v, rounded, real, c))(x)


def _near(x: Any, c: Constants) -> tuple[Any, Any, int]:
    """What x is more than a whole number of quarter turns, as a sum, and that number."""
    n = fma(x, c.two_over_pi, c.rounder) - c.rounder
    first = fma(n, -c.half_pi, x)
    middle = n * c.half_pi_middle
    r = first - middle
    moved = r - first
    lost = (first - (r - moved)) - (middle + moved)
    return r, lost - fma(n, c.half_pi_low, fma(n, c.half_pi_middle, -middle)), int(n)


def _far(x: np.float64) -> tuple[Any, Any, int]:
    """The same for a finite float64 of at least 1 in size, by whole numbers."""
    mantissa, exponent = (int(part) for part in np.frexp(abs(x)) * np.array([2.0**53, 1]))
    exponent -= 53
    places = int("".join(f"{int(word):064b}" for word in TWO_OVER_PI)[exponent + 62 : exponent + 62 + 192], 2)
    turns = (mantissa * places % 2**192) >> 62
    quadrant, rest = divmod(turns, 2**128)
    above = rest >= 2**127
    quadrant, rest = (quadrant + 1, 2**128 - 1 - rest) if above else (quadrant, rest)
    a, b, d, e = (np.float64(float(Fraction((rest >> 128 - 32 * k) % 2**32, 2 ** (32 * k)))) for k in (1, 2, 3, 4))
    whole = a + b
    part = ((a - whole) + b) + (d + e)
    share = whole + part
    left = (whole - share) + part
    r = share * FLOAT64.half_pi
    low = fma(share, FLOAT64.half_pi, -r) + (share * FLOAT64.half_pi_middle + left * FLOAT64.half_pi)
    r, low = (-r, -low) if above != (x < 0) else (r, low)
    return r, low, -quadrant if x < 0 else quadrant


def _turned(x: Any, quarters: int, real: Any, c: Constants) -> Any:
    """The sine of x after some quarter turns."""
    if not np.isfinite(x):
        return real(np.nan)
    if abs(x) <= c.turns_known:
        r, low, quadrant = _near(x, c)
    else:
        wide, wide_low, quadrant = _far(np.float64(x))
        r = real(wide)
        low = real((wide - np.float64(r)) + wide_low)
    z = r * r
    half_z = real(0.5) * z
    if (quadrant + quarters) % 2:
        w = real(1) - half_z
        y = w + (((real(1) - w) - half_z) + fma(z * z, polynomial(z, c.cosine), -(r * low)))
    else:
        y = r + fma(z * r, polynomial(z, c.sine), fma(-half_z, low, low))
    return -y if (quadrant + quarters) % 4 >= 2 else y


@elementwise
def sin(x: Any, real: Any, c: Constants) -> Any:
    """The sine of every element of a float32 or float64 array; the same shape and dtype."""
    return x if abs(x) < c.tiny else _turned(x, 0, real, c)


@elementwise
def cos(x: Any, real: Any, c: Constants) -> Any:
    """The cosine of every element of a float32 or float64 array; the same shape and dtype."""
    return _turned(x, 1, real, c)

"""Inverse trigonometric and hyperbolic functions, slow and obvious: the same trees as the kernels', in numpy scalars.

The compiled functions must give these bits. Nothing is shared with them but the table of constants.
"""

from typing import Any

import numpy as np

from ....arrays import Array
from ...numerics.coefficients import Constants
from ...numerics.math.reference import CONSTANTS, elementwise, fma, log_terms_of, polynomial, raised, split
from . import reference


def _known(function: Any, x: Any) -> Any:
    """A function of arrays, of one number."""
    return function(np.asarray([x]))[0]


def _from(eighths: int, part: Any, tail: Any, c: Constants) -> Any:
    """``eighths * pi / 4 + (part + tail)``."""
    real = part.dtype.type
    quarter, low = real(0.5) * c.half_pi, real(0.5) * c.half_pi_middle
    base = real(eighths) * quarter
    base_low = fma(real(eighths), quarter, -base) + real(eighths) * low
    y = base + part
    return y + ((((base - y) + part) + base_low) + tail)


def _sum(a: Any, b: Any) -> tuple[Any, Any]:
    total = a + b
    second = total - a
    return total, (a - (total - second)) + (b - second)


def _angle(y: Any, x: Any, turn: int, eighths: int, c: Constants) -> Any:
    real = x.dtype.type
    if y > x * real(2.4140625):
        over, under, low, known = -x, y, real(0), 2
    elif y > x * real(0.4140625):
        over, over_low = _sum(y, -x)
        under, under_low = _sum(y, x)
        low, known = fma(-(over / under), under_low, over_low), 1
    else:
        over, under, low, known = y, x, real(0), 0
    u = over / under
    lost = (fma(-u, under, over) + low) / under
    z = u * u
    tail = fma(u, z * polynomial(z, c.arctan), lost)
    return _from(eighths + turn * known, real(turn) * u, real(turn) * tail, c)


@elementwise
def atan(x: Any, real: Any, c: Constants) -> Any:
    """The angle whose tangent is x, of every element of a float32 or float64 array."""
    if np.isnan(x):
        return x
    return np.copysign(_angle(min(abs(x), real(2.0**60)), real(1), 1, 0, c), x)


def _atan2(y: Any, x: Any, real: Any, c: Constants) -> Any:
    if np.isnan(x) or np.isnan(y):
        return real(np.nan)
    a, b = abs(y), abs(x)
    if np.isinf(a) or np.isinf(b):
        a, b = real(np.isinf(a)), real(np.isinf(b))
    factor = real(0.25) if np.isinf(a + b) else c.lift * c.lift if a + b < 1 else real(1)
    a, b = a * factor, b * factor
    b = real(1) if a + b == 0 else b
    turn, eighths = (-1, 4) if np.signbit(x) else (1, 0)
    return np.copysign(_angle(a, b, turn, eighths, c), y)


def atan2(a: Array, b: Array) -> Array:
    """The angles of the points (b, a)."""
    out, real, c = np.empty_like(a), a.dtype.type, CONSTANTS[a.dtype]
    with np.errstate(all="ignore"):
        for at in np.ndindex(a.shape):
            out[at] = _atan2(a[at], b[at], real, c)
    return out


def _arc(a: Any, real: Any, c: Constants) -> tuple[Any, Any]:
    """``asin a`` as a sum below 1/2, above it what pi / 2 is more than it."""
    if a < 0.5:
        z = a * a
        return a, a * (z * polynomial(z, c.arcsine)) + real(0)
    w = (real(1) - a) * real(0.5)
    root = np.sqrt(w)
    lost = fma(-root, root, w) / (real(1) if root == 0 else root + root)
    tail = root * (w * polynomial(w, c.arcsine)) + lost
    return real(2) * root, real(2) * tail


@elementwise
def asin(x: Any, real: Any, c: Constants) -> Any:
    """The angle whose sine is x, of every element of a float32 or float64 array."""
    a = abs(x)
    if not a <= 1:
        return real(np.nan)
    main, tail = _arc(a, real, c)
    return np.copysign(_from(0, main, tail, c) if a < 0.5 else _from(2, -main, -tail, c), x)


@elementwise
def acos(x: Any, real: Any, c: Constants) -> Any:
    """The angle whose cosine is x, of every element of a float32 or float64 array."""
    if not abs(x) <= 1:
        return real(np.nan)
    main, tail = _arc(abs(x), real, c)
    if abs(x) < 0.5:
        return _from(2, main, tail, c) if x < 0 else _from(2, -main, -tail, c)
    return _from(4, -main, -tail, c) if x < 0 else _from(0, main, tail, c)


def _exp_over_two(x: Any, real: Any, c: Constants) -> Any:
    if np.isnan(x):
        return x
    x = min(max(x, c.exp_zero), c.exp_overflow + real(1))
    n = fma(x, c.log2_e, c.rounder) - c.rounder
    high = fma(n, -c.ln2_high, x)
    return raised(int(n) - 1, high, n * -c.ln2_low, fma(n, -c.ln2_low, high), c)


@elementwise
def sinh(x: Any, real: Any, c: Constants) -> Any:
    """The hyperbolic sine of every element of a float32 or float64 array."""
    a = abs(x)
    if a < 1:
        e = _known(reference.expm1, a)
        return np.copysign(real(0.5) * ((e + e) - (e * e) / (e + real(1))), x)
    h = _exp_over_two(a, real, c)
    return np.copysign(h - real(0.25) / h, x)


@elementwise
def cosh(x: Any, real: Any, c: Constants) -> Any:
    """The hyperbolic cosine of every element of a float32 or float64 array."""
    h = _exp_over_two(abs(x), real, c)
    return h + real(0.25) / h


def _log_of_twice(x: Any, real: Any, c: Constants) -> Any:
    if not x < np.inf:
        return x
    f, n = split(x, real, c)
    high, f, tail = log_terms_of(f, n + real(1), real, c)
    y = high + f
    return y + (((high - y) + f) + tail)


@elementwise
def asinh(x: Any, real: Any, c: Constants) -> Any:
    """The number whose hyperbolic sine is x, of every element of a float32 or float64 array."""
    a = abs(x)
    if a > 2.0**28:
        return np.copysign(_log_of_twice(a, real, c), x)
    square = a * a
    return np.copysign(_known(reference.log1p, a + square / (real(1) + np.sqrt(square + real(1)))), x)


@elementwise
def acosh(x: Any, real: Any, c: Constants) -> Any:
    """The positive number whose hyperbolic cosine is x, of every element of a float32 or float64 array."""
    if not x >= 1:
        return real(np.nan)
    if x > 2.0**28:
        return _log_of_twice(x, real, c)
    t = x - real(1)
    return _known(reference.log1p, t + np.sqrt(t * (t + real(2))))


@elementwise
def atanh(x: Any, real: Any, c: Constants) -> Any:
    """The number whose hyperbolic tangent is x, of every element of a float32 or float64 array."""
    a = abs(x)
    return np.copysign(real(0.5) * _known(reference.log1p, (a + a) / (real(1) - a)), x)

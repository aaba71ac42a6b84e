"""The elementary functions and fma, slow and obvious: the same trees in numpy scalars and exact integers.

The compiled functions must give these bits. Nothing is shared with them but the table of constants.
"""

from collections.abc import Callable
from functools import reduce, wraps
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from ..coefficients import FLOAT32, FLOAT64, Constants, Real

Reals = npt.NDArray[Real]

CONSTANTS: dict[np.dtype[Any], Constants] = {np.dtype(np.float32): FLOAT32, np.dtype(np.float64): FLOAT64}

RANGES = {dtype: (int(np.finfo(dtype).minexp), int(np.finfo(dtype).nmant)) for dtype in CONSTANTS}
"""The exponent of the smallest normal number, and the bits behind the point."""


def fma(a: Real, b: Real, c: Real) -> Real:
    """``a * b + c`` of three numpy scalars of one float type, rounded once, half to even, by exact integers.

    >>> float(fma(np.float32(1 + 2**-12), np.float32(1 + 2**-12), np.float32(-1))) == 2**-11 + 2**-24
    True
    """
    x, y, z = float(a), float(b), float(c)
    if not (isfinite(x) and isfinite(y) and isfinite(z)):
        return c if isfinite(x) and isfinite(y) else a * b + c
    (p, q), (r, s), (t, u) = x.as_integer_ratio(), y.as_integer_ratio(), z.as_integer_ratio()
    numerator = p * r * u + t * q * s
    return _rounded(numerator, (q * s * u).bit_length() - 1, a.dtype) if numerator else a * b + c


def _rounded(numerator: int, halvings: int, dtype: np.dtype[Any]) -> Real:
    """The float nearest to ``numerator / 2**halvings``, which is not 0; half to even."""
    least, digits = RANGES[dtype]
    size = abs(numerator)
    unit = max(size.bit_length() - 1 - halvings, least) - digits  # the power of two of the result's last bit
    cut = unit + halvings
    units = dtype.type(size << -cut if cut <= 0 else _shifted(size, cut))
    return scaled(units if numerator > 0 else -units, unit)


def _shifted(size: int, cut: int) -> int:
    """``size / 2**cut`` to the nearest integer, half to even; cut > 0."""
    whole, rest, half = size >> cut, size & ((1 << cut) - 1), 1 << (cut - 1)
    return whole + (rest > half or (rest == half and whole & 1 == 1))


def scaled(x: Real, exponent: int) -> Real:
    """``x * 2**exponent``; exact unless it overflows."""
    product: Real = np.ldexp(x, exponent)
    return product


def polynomial(x: Real, coefficients: tuple[Real, ...]) -> Real:
    """The polynomial's value by Horner's scheme with fma, highest power first."""
    return reduce(lambda value, coefficient: fma(value, x, coefficient), coefficients)


def elementwise(scalar: Callable[[Any, Any, Constants], Any]) -> Callable[[Reals], Reals]:
    """Make a function of arrays from one of a scalar, its float type and the constants of that type."""

    @wraps(scalar)
    def function(x: Reals) -> Reals:
        real, constants = x.dtype.type, CONSTANTS[x.dtype]
        out = np.empty_like(x)
        with np.errstate(all="ignore"):
            for i in np.ndindex(x.shape):
                out[i] = scalar(real(x[i]), real, constants)
        return out

    return function


def exp_of(x: Any, real: Any, c: Constants) -> Any:
    """``e ** x`` of one number."""
    if np.isnan(x):
        return x
    x = min(max(x, c.exp_zero), c.exp_overflow)
    n = fma(x, c.log2_e, c.rounder) - c.rounder
    high = fma(n, -c.ln2_high, x)
    return raised(int(n), high, n * -c.ln2_low, fma(n, -c.ln2_low, high), c)


def raised(n: int, high: Any, low: Any, r: Any, c: Constants) -> Any:
    """``2**n * e**(high + low)``, where r is the rounded sum."""
    one = high.dtype.type(1)
    tail = fma(r * r, polynomial(r, c.exp), low)
    y = one + high
    y = y + (((one - y) + high) + tail)
    first = n // 2
    return (y * scaled(one, first)) * scaled(one, n - first)


@elementwise
def exp(x: Any, real: Any, c: Constants) -> Any:
    """``e ** x`` of every element of a float32 or float64 array; the same shape and dtype."""
    return exp_of(x, real, c)


@elementwise
def log(x: Any, real: Any, c: Constants) -> Any:
    """``ln x`` of every element of a float32 or float64 array; the same shape and dtype."""
    if x == 0:
        return real(-np.inf)
    if x < 0:
        return real(np.nan)
    if not np.isfinite(x):
        return x
    high, f, tail = log_terms(x, real, c)
    y = high + f
    return y + (((high - y) + f) + tail)


def split(x: Any, real: Any, c: Constants) -> tuple[Any, Any]:
    """f and n such that ``x = (1 + f) 2**n`` and ``1 + f`` is in ``[√½, √2)``."""
    m, n = np.frexp(x)
    if m < c.root_half:
        m, n = m * real(2), n - 1
    return m - real(1), real(n)


def log_terms(x: Any, real: Any, c: Constants) -> tuple[Any, Any, Any]:
    """Three numbers that sum to ``ln x``, largest first, for finite x > 0."""
    return log_terms_of(*split(x, real, c), real, c)


def log_terms_of(f: Any, n: Any, real: Any, c: Constants) -> tuple[Any, Any, Any]:
    """Three numbers that sum to ``ln(1 + f) + n ln 2``, largest first."""
    s = f / (f + real(2))
    z = s * s
    half_f = real(0.5) * f
    tail = fma(s, fma(z, polynomial(z, c.log), half_f * f), n * c.ln2_low)
    return n * c.ln2_high, f, fma(-half_f, f, tail)


@elementwise
def tanh(x: Any, real: Any, c: Constants) -> Any:
    """``tanh x`` of every element of a float32 or float64 array; the same shape and dtype."""
    a = abs(x)
    if a < 0.625:
        z = a * a
        y = fma(z * polynomial(z, c.tanh), a, a)
    else:
        y = real(1) - real(2) / (exp_of(a + a, real, c) + real(1))
    return np.copysign(y, x)


@elementwise
def sigmoid(x: Any, real: Any, c: Constants) -> Any:
    """``1 / (1 + e ** -x)`` of every element of a float32 or float64 array; the same shape and dtype."""
    e = exp_of(-abs(x), real, c)
    total = real(1) + e
    lost = (real(1) - total) + e
    inverse = real(1) / total
    part = e if x < 0 else real(1)
    y = part * inverse
    rest = fma(-y, lost, fma(-y, total, part))
    return fma(rest, inverse, y)

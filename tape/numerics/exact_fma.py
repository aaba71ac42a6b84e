"""Fused multiply-add in plain numpy: what the machine's must give, and all machines without one.

Single numbers go by exact integers. For arrays that would take hours: in float32 the product is exact in float64, and
the sum is rounded to odd there, so that rounding it to float32 rounds once. In float64 the same is done with the exact
error of the product (Boldo and Melquiond, Emulation of a FMA and correctly rounded sums, IEEE TC 57, 2008); operands
near the ends of the range go to exact integers.
"""

from math import isfinite
from typing import Any

import numpy as np

from ...base.arrays import Array
from .coefficients import Real

RANGES = {np.dtype(t): (int(np.finfo(t).minexp), int(np.finfo(t).nmant)) for t in (np.float32, np.float64)}
"""The exponent of the smallest normal number, and the bits behind the point."""

SAFE = 2.0**300
"""Between ``1 / SAFE`` and ``SAFE`` no intermediate result of the float64 algorithm leaves the normal range."""

SPLITTER = 2.0**27 + 1


def fma(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` of one float type, rounded once, half to even: numbers, or arrays of shapes that broadcast.

    >>> float(fma(np.float32(1 + 2**-12), np.float32(1 + 2**-12), np.float32(-1))) == 2**-11 + 2**-24
    True
    >>> fma(np.float32([3.0]), np.float32(0.5), np.float32(1.0)).tolist()
    [2.5]
    """
    if not any(isinstance(x, np.ndarray) and x.ndim for x in (a, b, c)):
        return _exact(a, b, c)
    a, b, c = np.broadcast_arrays(a, b, c)
    with np.errstate(all="ignore"):
        if a.dtype == np.float32:
            return _to_odd(a.astype(np.float64) * b, c.astype(np.float64)).astype(np.float32)
        return _float64(a, b, c)


def _exact(a: Real, b: Real, c: Real) -> Real:
    """By exact integers."""
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
    rounded: Real = np.ldexp(units if numerator > 0 else -units, unit)
    return rounded


def _shifted(size: int, cut: int) -> int:
    """``size / 2**cut`` to the nearest integer, half to even; cut > 0."""
    whole, rest, half = size >> cut, size & ((1 << cut) - 1), 1 << (cut - 1)
    return whole + (rest > half or (rest == half and whole & 1 == 1))


def _to_odd(x: Array, y: Array) -> Array:
    """``x + y`` rounded to odd: where it is not exact, of its two neighbours the one with the last bit set."""
    total, error = _two_sum(x, y)
    even = (total.view(np.int64) & 1) == 0
    toward = np.nextafter(total, np.copysign(np.inf, error))
    return np.where((error != 0) & even & np.isfinite(total), toward, total)


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """The rounded sum and its exact error (Knuth)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded product and its exact error (Dekker, Veltkamp)."""
    product = a * b
    a_high, b_high = (SPLITTER * x - (SPLITTER * x - x) for x in (a, b))
    a_low, b_low = a - a_high, b - b_high
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _float64(a: Array, b: Array, c: Array) -> Array:
    high, low = _two_product(a, b)
    rest, small = _two_sum(c, low)
    whole, tail = _two_sum(high, rest)
    out = whole + _to_odd(small, tail)
    exact = (a == 0) | (b == 0)  # the product is a zero, and plain arithmetic rounds once
    out = np.where(exact, a * b + c, out)
    unsafe = ~exact & ~(_safe(a) & _safe(b) & (_safe(c) | (c == 0)) & _safe(out))
    for at in zip(*np.nonzero(unsafe), strict=True):
        three: Any = a[at], b[at], c[at]
        out[at] = _exact(*three)
    return out


def _safe(x: Array) -> Array:
    size = np.abs(x)
    return (size > 1 / SAFE) & (size < SAFE)

"""Fused multiply-add of whole arrays in plain numpy, for references that would take hours with fractions.

In float32 the product is exact in float64, and the sum is rounded to odd there, so that rounding it to float32
rounds once. In float64 the same is done with the exact error of the product (Boldo and Melquiond, Emulation of a
FMA and correctly rounded sums, IEEE TC 57, 2008); operands near the ends of the range go to exact fractions.
"""

from typing import Any

import numpy as np

from ....arrays import Array
from .reference import fma

SAFE = 2.0**300
"""Between ``1 / SAFE`` and ``SAFE`` no intermediate result of the float64 algorithm leaves the normal range."""

SPLITTER = 2.0**27 + 1


def fma_arrays(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` of arrays of one float type and of shapes that broadcast, rounded once.

    >>> fma_arrays(np.float32([3.0]), np.float32([0.5]), np.float32([1.0])).tolist()
    [2.5]
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    with np.errstate(all="ignore"):
        if a.dtype == np.float32:
            return _to_odd(a.astype(np.float64) * b, c.astype(np.float64)).astype(np.float32)
        return _float64(a, b, c)


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
        out[at] = fma(*three)
    return out


def _safe(x: Array) -> Array:
    size = np.abs(x)
    return (size > 1 / SAFE) & (size < SAFE)

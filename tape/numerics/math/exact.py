"""Arithmetic of attributes, rounded once and to nearest.

Python's floats follow the rounding mode of the calling thread, which other libraries set; its integers do not,
and a quotient of integers is rounded to nearest by CPython itself.
"""

from fractions import Fraction
from math import isqrt

ROOT_BITS = 128
"""Binary places of a root before it is rounded."""


def difference(a: float, b: float) -> float:
    """``a - b`` of finite numbers.

    >>> difference(1.0, 0.1)
    0.9
    """
    return float(Fraction(a) - Fraction(b))


def product(a: float, b: float) -> float:
    """``a * b`` of finite numbers.

    >>> product(3, 0.1)
    0.30000000000000004
    """
    return float(Fraction(a) * Fraction(b))


def quotient(a: float, b: float) -> float:
    """``a / b`` of finite numbers, b not 0.

    >>> quotient(0.1, 3)
    0.03333333333333333
    """
    return float(Fraction(a) / Fraction(b))


def root(x: float) -> float:
    """``sqrt(x)`` of a finite number of at least 0.

    >>> root(4.0), root(2.0), root(1e-300)
    (2.0, 1.4142135623730951, 1e-150)
    """
    n, d = float(x).as_integer_ratio()
    square = n * d << 2 * ROOT_BITS
    places = isqrt(square)
    odd = places * places != square  # more places follow: one that says so leaves no tie to break
    return float(Fraction(2 * places + odd, d << ROOT_BITS + 1))


def inverse_root(n: int) -> float:
    """``1 / sqrt(n)`` for a whole number from 1 to 2**128.

    What lies behind the last place of the root is not zero unless the root is a power of two, so a place more
    that says so leaves no tie to break.

    >>> inverse_root(4), inverse_root(64), inverse_root(3)
    (0.5, 0.125, 0.5773502691896257)
    """
    places = isqrt((1 << 2 * ROOT_BITS) // n)
    return float(Fraction(2 * places + 1, 1 << ROOT_BITS + 1))

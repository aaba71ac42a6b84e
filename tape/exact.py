"""Arithmetic of attributes, rounded once and to nearest.

Python's floats follow the rounding mode of the calling thread, which other libraries set; its integers do not,
and a quotient of integers is rounded to nearest by CPython itself.
"""

from fractions import Fraction


def difference(a: float, b: float) -> float:
    """``a - b`` of finite numbers.

    >>> difference(1.0, 0.1)
    0.9
    """
    return float(Fraction(a) - Fraction(b))


def quotient(a: float, b: float) -> float:
    """``a / b`` of finite numbers, b not 0.

    >>> quotient(0.1, 3)
    0.03333333333333333
    """
    return float(Fraction(a) / Fraction(b))

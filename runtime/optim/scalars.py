"""Checks of the numbers that rules and schedules are made of; every error names the class and the argument."""

from math import inf
from numbers import Integral, Real

from ...tape.errors import DomainError

LARGEST_COUNT = 2**53
"""Every whole number up to this one is a float64."""


def number(where: str, value: object, low: float = 0.0, below: float = inf) -> float:
    """``value`` as a float in ``[low, below)``, else DomainError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise DomainError(f"{where}: expected a number, got {value!r}")
    result = float(value)
    if not low <= result < below:
        bounds = f"of at least {low:g}" if below == inf else f"in [{low:g}, {below:g})"
        raise DomainError(f"{where}: expected a finite number {bounds}, got {result!r}")
    return result


def fraction(where: str, value: object) -> float:
    """``value`` as a float in ``[0, 1]``, else DomainError."""
    result = number(where, value)
    if result > 1:
        raise DomainError(f"{where}: expected a number in [0, 1], got {result!r}")
    return result


def whole(where: str, value: object, low: int = 1) -> int:
    """``value`` as an int from ``low`` to `LARGEST_COUNT`, else DomainError."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise DomainError(f"{where}: expected a whole number, got {value!r}")
    result = int(value)
    if not low <= result <= LARGEST_COUNT:
        raise DomainError(f"{where}: expected a whole number from {low} to 2**53, got {result}")
    return result

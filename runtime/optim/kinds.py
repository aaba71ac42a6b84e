"""What the numbers of rules and schedules may be, beside what those of ops and layers may."""

# kernels: none

from collections.abc import Sequence
from math import inf, nan
from typing import Any, cast

from ...tape.record.described import Described, checked, types_of
from ...tape.record.kinds import Kind
from ...tape.record.kinds.values import Values

LARGEST_COUNT = 2**53
"""Every whole number up to this one is a float64."""

SHARE = Values("a finite number in [0, 1)", lambda x: 0 <= x < 1, (1.0, -0.1, inf, nan))
FRACTION = Values("a number in [0, 1]", lambda x: 0 <= x <= 1, (1.5, -0.1, inf, nan))
FROM_1 = Values("a finite number of at least 1", lambda x: 1 <= x < inf, (0.5, -1.0, inf, nan))
BOUND = Values("a number of at least 0", lambda x: x >= 0, (-1.0, -inf, nan))
BETAS = Values(
    "two finite numbers in [0, 1)",
    lambda betas: len(betas) == 2 and all(map(SHARE.fits, betas)),
    ((0.9, 1.0), (-0.1, 0.9), (nan, 0.9), (0.9,), (0.9, 0.9, 0.9)),
)


def count_from(low: int) -> Values:
    """Whole numbers from ``low`` on that a float64 can hold."""
    most = LARGEST_COUNT
    return Values(f"a whole number from {low} to 2**53", lambda n: low <= n <= most, (low - 1, low - 5, most + 1))


COUNT = count_from(1)
WHOLE, REAL, FLAG = Kind(int), Kind(float), Kind(bool)


def count(owner: str, argument: str, value: Any, kind: Values = COUNT) -> int:
    """A checked whole number that is an argument of a function. Raises DomainError for another."""
    return cast(int, checked(owner, argument, value, WHOLE, kind))


def number(owner: str, argument: str, value: Any, kind: Values) -> float:
    """Likewise a number, as a float."""
    return float(checked(owner, argument, value, REAL, kind))


class Hyperparameters(Described):
    """Base of rules and schedules: what their annotations call a float is one, also where a whole number was given."""

    def __post_init__(self) -> None:
        """Check the fields. Raises as `Described` does."""
        super().__post_init__()
        for name, kind in types_of(cast(Any, type(self))).items():
            if kind.floats:
                object.__setattr__(self, name, _in_floats(getattr(self, name)))


def _in_floats(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple([_in_floats(part) for part in cast(Sequence[Any], value)])
    return float(value) if value.__class__ is int else value

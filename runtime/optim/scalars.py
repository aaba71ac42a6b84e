"""What the numbers of rules and schedules may be, and their checks; every error names the class and the argument."""

from collections.abc import Callable, Mapping
from math import inf, nan
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

from ...tape.errors import DomainError
from ...tape.record.described import Described
from ...tape.record.kinds.values import NOT_NEGATIVE, Values

LARGEST_COUNT = 2**53
"""Every whole number up to this one is a float64."""

SHARE = Values("a finite number in [0, 1)", lambda x: 0 <= x < 1, (1.0, -0.1, inf, nan))
ANY = Values("a finite number of at least -inf", lambda x: -inf <= x < inf, (inf, nan))
FROM_1 = Values("a finite number of at least 1", lambda x: 1 <= x < inf, (0.5, -1.0, inf, nan))

Check: TypeAlias = Values | Callable[[str, Any], Any]
"""What a field has to be: the kind of a number, or ``check(where, value)``, which gives it in plain form."""

Checks: TypeAlias = Mapping[str, Check]
"""By the name of a field."""


class Checked(Described):
    """Base of rules and schedules: ``kinds={"factor": SHARE}`` says what fields have to be, beside what is usual."""

    checks: ClassVar[Checks] = {}
    """What each of these fields has to be; those of the bases are among them."""

    def __init_subclass__(cls, kinds: Checks | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.checks = {**cls.checks, **(kinds or {})}

    def __post_init__(self) -> None:
        for name, check in self.checks.items():
            object.__setattr__(self, name, checked(f"{type(self).__name__}: {name}", check, getattr(self, name)))


def checked(where: str, check: Check, value: Any) -> Any:
    """``value`` in plain form, else DomainError."""
    return number(where, value, check) if isinstance(check, Values) else check(where, value)


def number(where: str, value: object, kind: Values = NOT_NEGATIVE) -> float:
    """``value`` as a float of a kind, else DomainError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise DomainError(f"{where}: expected a number, got {value!r}")
    result = float(value)
    if not kind.fits(result):
        raise kind.error(f"{where}: expected {kind.expected}, got {result!r}")
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


def flag(where: str, value: object) -> bool:
    """``value`` as a bool, else DomainError."""
    if value not in (False, True):
        raise DomainError(f"{where}: expected False or True, got {value!r}")
    return bool(value)

"""What fields of layers may be, beside what attributes of ops may: sizes, words, and what goes with another field."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import DomainError
from ..record.kinds.values import Given, ValueKind, Values, Wrong, at_least

SIZE = at_least(1, "an int of at least")


def either(first: str, second: str) -> Values:
    """One of two words."""
    return Values(f"{first!r} or {second!r}", lambda given: given in (first, second), ("neither", "", first.upper()))


@dataclass(frozen=True)
class Both(ValueKind):
    """Values that two kinds take; what the first refuses, the second need not know."""

    first: ValueKind
    second: ValueKind

    def require(self, op: str, argument: str, given: Given) -> None:
        """Raise the error of the first kind that does not take the value."""
        self.first.require(op, argument, given)
        self.second.require(op, argument, given)

    def wrong(self, given: Given) -> Sequence[Wrong]:
        """What either refuses."""
        return [*self.first.wrong(given), *self.second.wrong(given)]

    def example(self) -> Wrong:
        """That of the first."""
        return self.first.example()


@dataclass(frozen=True)
class MultipleOf(ValueKind):
    """Whole numbers that another field divides; that field's own kind refuses what divides nothing."""

    of: str

    def _expected(self, divisor: int) -> str:
        return f"a multiple of {self.of} {divisor}"

    def require(self, op: str, argument: str, given: Given) -> None:
        """Raise DomainError for a number that is not divided."""
        divisor, value = given[self.of], given[argument]
        if divisor is not None and divisor > 0 and value % divisor:
            raise DomainError(f"{op}: {Wrong(DomainError, self._expected(divisor), value).text(argument)}")

    def wrong(self, given: Given) -> Sequence[Wrong]:
        """The numbers behind a multiple, if there are any."""
        divisor = given[self.of] or 1
        return [Wrong(DomainError, self._expected(divisor), k * divisor + 1) for k in (1, 5) if divisor > 1]

    def example(self) -> Wrong:
        """That of 2."""
        return Wrong(DomainError, self._expected(2), 3)


def multiple_of(field: str) -> Both:
    """Sizes that are a multiple of another field."""
    return Both(SIZE, MultipleOf(field))

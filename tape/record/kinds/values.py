"""Which values of its type an attribute takes: a kind refuses the others, says so in docstrings, and knows bad ones.

The property test of errors gives every op what its kinds call wrong, so a record needs no line about it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any, NamedTuple

from ...errors import DomainError, ShapeError
from ...numerics.sizes import Sizes
from ...values.per_axis import per_axis, per_side
from ...values.shape import normal_axes, normal_axis

Given = Mapping[str, Any]
"""The arguments of a call by name: of inputs the shapes, None for one that is left out, of attributes the values."""


class Wrong(NamedTuple):
    """A value that a kind refuses, with what it says then."""

    error: type[Exception]
    expected: str
    value: Any

    def text(self, argument: str) -> str:
        """What messages say behind the op's name."""
        return f"argument {argument!r}: expected {self.expected}, got {self.value!r}"


class ValueKind(ABC):
    """The values that an attribute takes."""

    @abstractmethod
    def require(self, op: str, argument: str, given: Given) -> None:
        """Raise the kind's error for a value that it does not take."""

    @abstractmethod
    def wrong(self, given: Given) -> Sequence[Wrong]:
        """Values that must be refused beside the other arguments of a call that is right."""

    @abstractmethod
    def example(self) -> Wrong:
        """The refusal that docstrings show."""


@dataclass(frozen=True)
class Values(ValueKind):
    """Values that hold a condition, whatever the other arguments are.

    >>> Values("an even number", lambda n: n % 2 == 0, (1, -3)).example().text("n")
    "argument 'n': expected an even number, got 1"
    """

    expected: str
    fits: Callable[[Any], bool]
    refused: Sequence[Any]
    """Values that do not hold it, of every sort that somebody may give; the first stands in docstrings."""
    error: type[Exception] = DomainError

    def require(self, op: str, argument: str, given: Given) -> None:
        """Raise the kind's error for a value that does not hold the condition."""
        if not self.fits(given[argument]):
            raise self.error(f"{op}: {Wrong(self.error, self.expected, given[argument]).text(argument)}")

    def wrong(self, given: Given) -> Sequence[Wrong]:
        """Each of the refused values."""
        return [Wrong(self.error, self.expected, value) for value in self.refused]

    def example(self) -> Wrong:
        """The first of them."""
        return Wrong(self.error, self.expected, self.refused[0])


POSITIVE = Values("a positive finite number", lambda x: 0 < x < inf, (0.0, -1.0, inf, nan))
NOT_NEGATIVE = Values("a finite number of at least 0", lambda x: 0 <= x < inf, (-1e-5, -inf, inf, nan))
FINITE = Values("a finite number", lambda x: -inf < x < inf, (inf, -inf, nan))
PROBABILITY = Values("a probability from 0 to 1", lambda p: 0 <= p <= 1, (-0.5, 1.5, inf, nan))


def at_least(least: int, words: str = "at least", error: type[Exception] = DomainError) -> Values:
    """Whole numbers from ``least`` on."""
    return Values(f"{words} {least}", lambda n: n >= least, (least - 1, least - 4), error)


def one_of(*choices: str) -> Values:
    """One of a few strings."""
    others = [given for given in ("none of these", "", choices[0].upper()) if given not in choices]
    return Values(f"one of {', '.join(choices)}", lambda given: given in choices, others)


def optional(kind: Values) -> Values:
    """The same, or None."""

    def fits(value: Any) -> bool:
        return value is None or kind.fits(value)

    return replace(kind, expected=f"{kind.expected} or None", fits=fits)


@dataclass(frozen=True)
class Beside(ValueKind):
    """Values that go with the other arguments."""

    expected: str
    fits: Callable[[Given], bool]
    refused: Callable[[Given], Sequence[Any]]
    """Values that do not, beside the others of a call that is right."""
    shown: Any
    """The one that docstrings show."""

    def require(self, op: str, argument: str, given: Given) -> None:
        """Raise DomainError for arguments that do not go together."""
        if not self.fits(given):
            raise DomainError(f"{op}: {Wrong(DomainError, self.expected, given[argument]).text(argument)}")

    def wrong(self, given: Given) -> Sequence[Wrong]:
        """Each of the refused values."""
        return [Wrong(DomainError, self.expected, value) for value in self.refused(given)]

    def example(self) -> Wrong:
        """The one that is shown."""
        return Wrong(DomainError, self.expected, self.shown)


@dataclass(frozen=True)
class AxisOf(ValueKind):
    """An axis of an input, counted from either end; if ``many`` also several different ones, or None for all."""

    input: str
    many: bool = False

    def require(self, op: str, argument: str, given: Given) -> None:
        """Raise ShapeError for an axis that the input does not have, and for one that stands twice."""
        rank = len(given[self.input])
        if self.many:
            normal_axes(op, given[argument], rank, argument)
        elif given[argument] is not None:
            normal_axis(op, given[argument], rank, argument)

    def wrong(self, given: Given) -> Sequence[Wrong]:
        """The axes next to the first and the last; one of them beside a right one; one twice."""
        rank = len(given[self.input])
        expected = f"an axis from {-rank} to {rank - 1}" if rank else "no axis of a scalar"
        outside = [Wrong(ShapeError, expected, axis) for axis in (rank, -rank - 1)]
        if not self.many or not rank:
            return outside
        return [*outside, Wrong(ShapeError, "different axes", (0, -rank)), Wrong(ShapeError, "different axes", (0, 0))]

    def example(self) -> Wrong:
        """That of a matrix."""
        return Wrong(ShapeError, "an axis from -2 to 1", 2)


AXIS, AXES = AxisOf("x"), AxisOf("x", many=True)
"""An axis of x; several of them, or all."""


@dataclass(frozen=True)
class PerAxis(ValueKind):
    """A whole number of at least ``least`` for all of so many axes, or one for each of them."""

    least: int
    axes: Callable[[Given], int]
    """How many axes, by the other arguments; less than 1 if these do not fit, which the op says."""
    alone: bool = True
    """Whether its annotation takes one number for all."""
    sides: bool = False
    """Whether an axis may have two, one for each end."""

    def _expected(self, axes: int) -> str:
        pairs = ", or (before, behind) for each" if self.sides else ""
        return f"a whole number of at least {self.least}, or {axes} of them{pairs}"

    def require(self, op: str, argument: str, given: Given) -> None:
        """Raise ShapeError for a number that is too small, and for too many or too few numbers.

        None and words, which some annotations take beside numbers, are the op's.
        """
        value, axes = given[argument], self.axes(given)
        if axes < 1 or not isinstance(value, int | tuple):
            return
        found = per_side(value, axes, self.least) if self.sides else per_axis(value, axes, self.least)
        if found is None:
            raise ShapeError(f"{op}: {Wrong(ShapeError, self._expected(axes), value).text(argument)}")

    def wrong(self, given: Given) -> Sequence[Wrong]:
        """Numbers that are too small, alone and beside others, one number too many or too few, and none."""
        axes, low, right = self.axes(given), self.least - 1, self.least
        several = [(low,) * axes, (*(right,) * (axes - 1), low), (right,) * (axes + 1), (right,) * (axes - 1)]
        pairs = [((right, low),) * axes, ((right, right),) * (axes + 1), ((right,) * 3,) * axes] if self.sides else []
        refused = [*((low, low - 3) if self.alone else ()), (), *(given for given in several if given), *pairs]
        return [Wrong(ShapeError, self._expected(axes), given) for given in refused]

    def example(self) -> Wrong:
        """That of two axes."""
        return Wrong(ShapeError, self._expected(2), self.least - 1)


def each(given: int | Sizes, axes: int) -> Sizes:
    """One number for each of so many axes, from what a `PerAxis` takes."""
    return given if isinstance(given, tuple) else (given,) * axes

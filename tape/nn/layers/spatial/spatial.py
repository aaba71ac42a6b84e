"""Layers over the last axes of their input, and what their sizes may be."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ....errors import DomainError
from ....numerics.sizes import Sizes
from ....record.described import merged
from ....record.kinds.values import Given, ValueKind, Wrong, each
from ....record.refusals import Kinds
from ....values.per_axis import per_axis, per_side
from ...layer import Layer

AXES: dict[int, dict[str, str]] = {
    1: {"*spatial": "length", "*windows": "windows", "*output_size": "output_size"},
    2: {"*spatial": "H, W", "*windows": "Ho, Wo"},
}
"""What shapes call the axes of a layer that has so many."""


@dataclass(frozen=True)
class EachAxis(ValueKind):
    """An int of at least ``least`` for each axis, or one for all where it is known how many there are."""

    least: int
    beside: str | None = None
    """The field that says how many, unless the class does."""
    sides: bool = False
    """Whether an axis may have two, one for each end."""
    axes: int | None = None
    """How many, if the class says it."""

    def _axes(self, given: Given) -> int | None:
        return len(given[self.beside]) if self.axes is None and self.beside is not None else self.axes

    def _expected(self, axes: int | None) -> str:
        single, number = ("", "one for each axis") if axes is None else ("an int or ", f"{axes} of them")
        pairs = ", or (before, behind) for each" if self.sides else ""
        return f"{single}a tuple of ints of at least {self.least}, {number}{pairs}"

    def require(self, op: str, argument: str, given: Given) -> None:
        """Raise DomainError for a number that is too small, and for too many or too few numbers."""
        value, axes = given[argument], self._axes(given)
        if (per_side if self.sides else per_axis)(value, axes, self.least) is None:
            raise DomainError(f"{op}: {Wrong(DomainError, self._expected(axes), value).text(argument)}")

    def wrong(self, given: Given) -> Sequence[Wrong]:
        """Numbers that are too small, alone and beside others, and too many or too few."""
        axes, low, right = self._axes(given), self.least - 1, self.least
        count = axes or 2
        refused: list[Any] = [(), (low,) * count, (*(right,) * (count - 1), low)]
        refused += [] if axes is None else [low, low - 3, (right,) * (axes + 1)]
        refused += [((right, low),) * count, ((right,) * 3,) * count] if self.sides else []
        return [Wrong(DomainError, self._expected(axes), value) for value in refused]

    def example(self) -> Wrong:
        """A number that is too small; one in a tuple, where it is not known how many there are."""
        axes = 2 if self.axes is None and self.beside is not None else self.axes
        low = self.least - 1
        return Wrong(DomainError, self._expected(axes), (low,) if axes is None else low)


KERNEL = EachAxis(1)
"""The sizes of a window, or of what is made."""
STEPS = EachAxis(1, "kernel_size")
"""What windows have one of for each axis: strides, dilations."""
BORDER = EachAxis(0, "kernel_size", sides=True)
"""What stands around the elements."""


class Spatial(Layer):
    """A layer over the last axes of its input; a field has one size for each, or one int for all.

    How many axes there are, the kernel size says, or the class: ``Conv2d(3, 8, kernel_size=5)``.
    """

    axes: ClassVar[int | None] = None

    def __init_subclass__(cls, axes: int | None = None, kinds: Kinds | None = None, **options: Any) -> None:
        """Keep the number of axes: kinds know it, and the shapes that the base says name them."""
        found = kinds or {}
        if axes is not None:
            cls.axes = axes
            cls._facts = {"Shapes": [_named(rule, axes) for rule in merged(cls, "_facts").get("Shapes", ())]}
            above = {name: kind for name, kind in merged(cls, "kinds").items() if isinstance(kind, EachAxis)}
            found = {**{name: replace(kind, axes=axes) for name, kind in above.items()}, **found}
        super().__init_subclass__(kinds=found, **options)

    def sizes(self, given: int | Sizes) -> Sizes:
        """What a field holds, for each axis of the class."""
        return each(given, self.axes or 1)


def _named(rule: str, axes: int) -> str:
    for word, name in AXES.get(axes, {}).items():
        rule = rule.replace(word, name)
    return rule

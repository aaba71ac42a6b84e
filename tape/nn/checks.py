"""What layers check of their sizes and numbers when they are made; every text names the layer and the argument."""

from typing import Any, ClassVar

from ..errors import DomainError
from ..numerics.sizes import Sizes
from ..values.per_axis import per_axis, per_side
from .layer import Layer


def refuse(layer: Layer, argument: str, expected: str) -> DomainError:
    """The error for a field of a layer that is not what was expected."""
    given = getattr(layer, argument)
    return DomainError(f"{type(layer).__name__}: argument {argument!r}: expected {expected}, got {given!r}")


def require_at_least(layer: Layer, least: int, *arguments: str) -> None:
    """Raises DomainError for a field that is no int or below ``least``."""
    for argument in arguments:
        if not _at_least(getattr(layer, argument), least):
            raise refuse(layer, argument, f"an int of at least {least}")


def require_multiple(layer: Layer, argument: str, of: str) -> None:
    """Raises DomainError for a field that another one does not divide."""
    if getattr(layer, argument) % getattr(layer, of):
        raise refuse(layer, argument, f"a multiple of {of} {getattr(layer, of)}")


def require_not_negative(layer: Layer, argument: str) -> None:
    """Raises DomainError for a field that is not a finite number of at least 0."""
    if not 0 <= getattr(layer, argument) < float("inf"):
        raise refuse(layer, argument, "a finite number of at least 0")


def require_probability(layer: Layer, argument: str) -> None:
    """Raises DomainError for a field that is not between 0 and 1."""
    if not 0 <= getattr(layer, argument) <= 1:
        raise refuse(layer, argument, "a probability from 0 to 1")


class Spatial(Layer):
    """A layer over the last axes of its input; a field has one size for each, or one int for all.

    How many axes there are, the kernel size says, or the class: ``Conv2d(3, 8, kernel_size=5)``.
    """

    axes: ClassVar[int | None] = None

    def numbers(self, argument: str, least: int, axes: int | None) -> Sizes:
        """A field as one int for each of so many axes. Raises DomainError for anything else."""
        found = per_axis(getattr(self, argument), axes, least)
        if found is None:
            number = "one for each axis" if axes is None else f"{axes} of them"
            single = "" if axes is None else "an int or "
            raise refuse(self, argument, f"{single}a tuple of ints of at least {least}, {number}")
        return found

    def sides(self, argument: str, axes: int) -> tuple[tuple[int, int], ...]:
        """A field as (before, behind) of at least 0 for each of so many axes. Raises DomainError for anything else."""
        found = per_side(getattr(self, argument), axes)
        if found is None:
            several = f"{axes} of them, or (before, behind) for each"
            raise refuse(self, argument, f"an int or a tuple of ints of at least 0, {several}")
        return found


def _at_least(value: Any, least: int) -> bool:
    return isinstance(value, int) and value >= least

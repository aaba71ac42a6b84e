"""What layers check of their fields when they are made, and of x when called; texts name layer and argument."""

from collections.abc import Iterable
from math import prod
from typing import Any, ClassVar

import numpy as np

from ..errors import DomainError, ShapeError
from ..numerics.sizes import Sizes
from ..values.per_axis import per_axis, per_side
from ..var.var import AnyVar
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


def require_features(layer: Layer, x: AnyVar, size: int) -> None:
    """Raises ShapeError unless the last axis of ``x`` has this size."""
    _require(_shape(x)[-1:] == (size,), layer, x, f"shape (*Bs, {size})")


def require_channels(layer: Layer, x: AnyVar, count: int) -> None:
    """Raises ShapeError unless axis 1 of ``x``, behind the batch, has this size."""
    one = "; one sample gets an axis for the batch by x[None]" if _shape(x)[:1] == (count,) else ""
    _require(_shape(x)[1:2] == (count,), layer, x, f"shape (N, {count}, *S)", one)


def require_several(layer: Layer, x: AnyVar, axes: Iterable[int], of: str) -> None:
    """Raises ShapeError unless ``x`` has along these axes 2 elements at least, of which there is a variance."""
    _require(prod(_shape(x)[axis] for axis in axes) >= 2, layer, x, f"at least 2 elements of {of}")


def _shape(x: Any) -> Sizes:
    """The shape of a Var, or of what stands in its place."""
    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)


def _require(met: bool, layer: Layer, x: AnyVar, expected: str, hint: str = "") -> None:
    if not met:
        given = f"{'' if expected.startswith('shape') else 'shape '}{_shape(x)}"
        raise ShapeError(f"{layer!r}: argument 'x': expected {expected}, got {given}{hint}")


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

"""Numbers of which each axis has one: given as one for all, or as a tuple."""

from typing import Any, cast

from ..numerics.sizes import Sizes

PerAxis = int | tuple[int, ...]


def per_axis(given: Any, axes: int | None, least: int) -> Sizes | None:
    """A whole number of at least ``least`` for each of so many axes, or for any number of them; None for anything else.

    >>> per_axis(3, 2, 1), per_axis((3, 1), None, 1), per_axis((3, 0), 2, 1)
    ((3, 3), (3, 1), None)
    """
    numbers: Any = cast(Any, given) if isinstance(given, tuple) or axes is None else (given,) * axes
    if not are_whole(numbers) or not numbers or min(numbers) < least or axes not in (None, len(numbers)):
        return None
    return cast(Sizes, numbers)


def are_whole(given: Any) -> bool:
    """Whether it is a tuple of whole numbers."""
    return given.__class__ is tuple and all(isinstance(n, int) and not isinstance(n, bool) for n in given)

"""Numbers of which each axis has one: given as one for all, or as a tuple."""

from typing import Any, cast

from ..numerics.sizes import Sizes

PerAxis = int | tuple[int, ...]
PerSide = PerAxis | tuple[tuple[int, int], ...]
"""Numbers of which each axis has two, one for each end: as many at all, a number for each axis, or two for each."""


def per_axis(given: Any, axes: int | None, least: int) -> Sizes | None:
    """A whole number of at least ``least`` for each of so many axes, or for any number of them; None for anything else.

    >>> per_axis(3, 2, 1), per_axis((3, 1), None, 1), per_axis((3, 0), 2, 1)
    ((3, 3), (3, 1), None)
    """
    numbers: Any = cast(Any, given) if isinstance(given, tuple) or axes is None else (given,) * axes
    if not are_whole(numbers) or not numbers or min(numbers) < least or axes not in (None, len(numbers)):
        return None
    return cast(Sizes, numbers)


def per_side(given: Any, axes: int | None, least: int = 0) -> tuple[tuple[int, int], ...] | None:
    """(before, behind) for each of so many axes, or for any number of them; None for anything else.

    >>> per_side(1, 2), per_side((1, 2), 2), per_side(((0, 1),), 1), per_side(((0, 1),), 2)
    (((1, 1), (1, 1)), ((1, 1), (2, 2)), ((0, 1),), None)
    """
    if given.__class__ is tuple and given and all(pair.__class__ is tuple for pair in given):
        pairs = [per_axis(pair, 2, least) for pair in given]
        return None if None in pairs or axes not in (None, len(pairs)) else cast(tuple[tuple[int, int], ...], given)
    found = per_axis(given, axes, least)
    return None if found is None else tuple([(n, n) for n in found])


def are_whole(given: Any) -> bool:
    """Whether it is a tuple of whole numbers."""
    return given.__class__ is tuple and all(isinstance(n, int) and not isinstance(n, bool) for n in given)

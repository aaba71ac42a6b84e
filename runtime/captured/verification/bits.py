"""Comparing arrays to the bit, and filling memory with junk."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....base.arrays import Array
from .report import CheckError


def difference(expected: Array, found: Array) -> str | None:
    """Where two arrays first differ to the bit; None if nowhere. +0 is not -0, and every NaN is its own.

    >>> difference(np.array([1.0, 0.0]), np.array([1.0, -0.0]))
    'element [1]: expected 0.0, got -0.0 (1 of 2 differ)'
    """
    if (expected.shape, expected.dtype) != (found.shape, found.dtype):
        return f"expected {expected.dtype}{list(expected.shape)}, got {found.dtype}{list(found.shape)}"
    wrong = (_rows(expected) != _rows(found)).any(axis=1)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), expected.shape))
    count = f"{np.count_nonzero(wrong)} of {wrong.size} differ"
    return f"element {list(at)}: expected {expected[at].item()!r}, got {found[at].item()!r} ({count})"


def _rows(array: Array) -> Array:
    """The bytes of each element."""
    return np.ascontiguousarray(array).view(np.uint8).reshape(array.size, array.itemsize)


def require_same(expected: Mapping[str, Array], found: Mapping[str, Array], where: str) -> None:
    """Raise CheckError for the first array that differs in a bit or in its name."""
    if list(expected) != list(found):
        raise CheckError(f"{where}: expected the names {list(expected)}, got {list(found)}")
    for name, array in expected.items():
        wrong = difference(array, found[name])
        if wrong is not None:
            raise CheckError(f"{where}: {name!r}: {wrong}")


def copied(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """A copy of each."""
    return {name: array.copy() for name, array in arrays.items()}


def owner_of(array: Array) -> Any:
    """The array that allocated the memory of a view; the array itself if it did."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array

"""Orders, written slowly and plainly."""

import numpy as np

from ....base.arrays import Array


def argsort(x: Array, axis: int = -1, descending: bool = False) -> Array:
    """Positions in ascending or descending order, equal elements by position; -0 < +0, and NaN is the largest."""
    rows = np.moveaxis(x, axis, -1)
    out = np.empty(rows.shape, np.int64)
    for place in np.ndindex(*rows.shape[:-1]):
        out[place] = _order(rows[place], descending)
    return np.moveaxis(out, -1, axis)


def argtopk(x: Array, k: int, axis: int = -1, descending: bool = False) -> Array:
    """The first of them."""
    return argsort(x, axis, descending).take(range(k), axis)


def _order(row: Array, descending: bool) -> list[int]:
    key = [_key(value) for value in row.tolist()]
    return sorted(range(len(key)), key=key.__getitem__, reverse=descending)


def _key(value: float) -> tuple[bool, float, bool]:
    nan = value != value
    return nan, 0 if nan else value, not nan and bool(np.signbit(value) == 0)


def sort(x: Array, axis: int = -1, descending: bool = False) -> Array:
    """The elements in that order."""
    return np.take_along_axis(x, argsort(x, axis, descending), axis)

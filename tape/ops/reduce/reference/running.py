"""The living definition of the bits, continued: chains along an axis."""

import numpy as np

from .....base.arrays import Array
from .reductions import first_extreme


def cumprod(x: Array, axis: int) -> Array:
    """The running product along an axis."""
    out = np.empty_like(x)
    source, target = np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0)
    for i, row in enumerate(source):
        target[i] = target[i - 1] * row if i else row
    return out


def recurrence(a: Array, b: Array, axis: int) -> Array:
    """``y[0] = b[0]``, then ``y[r] = b[r] + a[r] * y[r - 1]``."""
    out = np.empty_like(b)
    factors, terms, target = (np.moveaxis(x, axis, 0) for x in (a, b, out))
    for i, term in enumerate(terms):
        target[i] = term + factors[i] * target[i - 1] if i else term
    return out


def running_place(x: Array, axis: int, largest: bool) -> Array:
    """The last position, in row-major order, of the extreme of the elements up to each one along an axis."""
    places = np.arange(x.size, dtype=np.int64).reshape(x.shape)
    out = np.empty_like(places)
    rows = (np.moveaxis(array, axis, -1) for array in (x, places, out))
    values, numbers, target = rows
    for at in np.ndindex(values.shape):
        *row, i = at
        before = values[tuple(row)][i::-1]  # backwards, so that the first of equal ones is the last
        target[at] = numbers[tuple(row)][i - first_extreme(before, 1 if largest else -1)]
    return out


def running_index(x: Array, axis: int, largest: bool) -> Array:
    """The same positions, counted along the axis."""
    places = running_place(x, axis, largest)
    return np.asarray(np.unravel_index(places, x.shape)[axis]) if x.size else places

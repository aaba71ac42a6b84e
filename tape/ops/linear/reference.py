"""Triangular factors and systems, element by element, in scalars."""

from typing import Any

import numpy as np

from ....base.arrays import Array
from ...numerics.exact_fma import fma


def cholesky(a: Array) -> Array:
    """The lower triangular factor: each element of ``a`` less products, one by one, then divided or rooted."""
    out = np.zeros_like(a)
    for at in np.ndindex(*a.shape[:-2]):
        for i in range(a.shape[-1]):
            for j in range(i + 1):
                _factor(out[at], a[at], i, j)
    return out


def _factor(out: Array, a: Array, i: int, j: int) -> None:
    total: Any = a[i, j]
    for k in range(j):
        total = fma(-out[j, k], out[i, k], total)
    if i > j:
        out[i, j] = total / out[j, j]
    else:
        out[i, j] = np.sqrt(total) if total > 0 else np.nan


def solve_triangular(a: Array, b: Array, upper: bool, transpose: bool = False, unitriangular: bool = False) -> Array:
    """Row after row: the right side less products with what is solved, in the order in which it was."""
    t = a.swapaxes(-1, -2) if transpose else a
    n = a.shape[-1]
    order = range(n - 1, -1, -1) if upper != transpose else range(n)
    out = np.empty_like(b)
    for *at, i, column in ((*m, i, c) for m in np.ndindex(*a.shape[:-2]) for i in order for c in range(b.shape[-1])):
        matrix = tuple(at)
        total: Any = b[(*matrix, i, column)]
        for k in order[: order.index(i)]:
            total = fma(-t[(*matrix, i, k)], out[(*matrix, k, column)], total)
        out[(*matrix, i, column)] = total if unitriangular else total / t[(*matrix, i, i)]
    return out

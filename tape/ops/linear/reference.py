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


def solve(a: Array, b: Array) -> Array:
    """Elimination with the largest element of each column as its pivot, then the rows from the last to the first."""
    n = a.shape[-1]
    out = np.empty_like(b)
    for at in np.ndindex(*a.shape[:-2]):
        rows = np.concatenate([a[at], b[at]], axis=-1)
        for i in range(n):
            sizes = np.abs(rows[i:, i])
            lost = np.isnan(sizes)
            row = i + int(np.argmax(lost) if lost.any() else np.argmax(sizes))
            rows[[i, row]] = rows[[row, i]]
            for r in range(i + 1, n):
                rows[r, i] = rows[r, i] / rows[i, i]
                rows[r, i + 1 :] = fma(-rows[r, i], rows[i, i + 1 :], rows[r, i + 1 :])
        for i in range(n - 1, -1, -1):
            for k in range(n - 1, i, -1):
                rows[i, n:] = fma(-rows[i, k], rows[k, n:], rows[i, n:])
            rows[i, n:] = rows[i, n:] / rows[i, i]
        out[at] = rows[:, n:]
    return out


def _reflected(column: Array, v: Array, share: Any) -> None:
    """A column less ``share · (vᵀ column) · v``, where v begins with 1."""
    total: Any = column[0]
    for below, x in zip(v[1:], column[1:], strict=True):
        total = fma(below, x, total)
    step = share * total
    column[0] = column[0] - step
    column[1:] = fma(-step, v[1:], column[1:])


def _chain(x: Array) -> Any:
    """The sum of squares, one after the other."""
    total: Any = x.dtype.type(0)
    for value in x:
        total = fma(value, value, total)
    return total


def reflections(a: Array) -> Array:
    """Each column turned upon its diagonal; then the reflections of the unit matrix, the last one first."""
    rows, columns = a.shape[-2:]
    least = min(rows, columns)
    out = np.zeros((*a.shape[:-1], least + columns), a.dtype)
    for at in np.ndindex(*a.shape[:-2]):
        r, q, kept = a[at].copy(), np.eye(rows, least, dtype=a.dtype), list[tuple[Array, Any]]()
        for i in range(least):
            norm, top = np.sqrt(_chain(r[i:, i])), r[i, i]
            turned = norm if top < 0 else -norm
            v = np.concatenate([[a.dtype.type(1)], np.where(r[i + 1 :, i] == 0, 0, r[i + 1 :, i] / (top - turned))])
            v = v.astype(a.dtype)
            squares = _chain(v[1:])
            share = a.dtype.type(0) if squares == 0 else a.dtype.type(2) / (a.dtype.type(1) + squares)
            if share != 0:
                for j in range(i + 1, columns):
                    _reflected(r[i:, j], v, share)
                r[i, i] = turned
            kept.append((v, share))
        for i in range(least - 1, -1, -1):
            for j in range(i, least) if kept[i][1] != 0 else ():
                _reflected(q[i:, j], *kept[i])
        out[at] = np.concatenate([q, np.triu(r)], axis=-1)
    return out

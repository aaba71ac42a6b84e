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


def _products(x: Array, y: Array) -> Any:
    """The sum of products, one after the other."""
    total: Any = x.dtype.type(0)
    for a, b in zip(x, y, strict=True):
        total = fma(a, b, total)
    return total


def _turned(rows: Array, p: int, q: int, part: slice, tolerance: Any, cut: Any) -> bool:
    """Whether two rows had to be turned in their plane so that a part of them is at right angles."""
    x, y, one = rows[p].copy(), rows[q].copy(), rows.dtype.type(1)
    a, b, c = _products(x[part], x[part]), _products(y[part], y[part]), _products(x[part], y[part])
    if a <= cut or b <= cut or not abs(c) > tolerance * (np.sqrt(a) * np.sqrt(b)):
        return False
    zeta = (b - a) / (c + c)
    tangent = one / (abs(zeta) + np.sqrt(fma(zeta, zeta, one)))
    tangent = -tangent if zeta < 0 else tangent
    cosine = one / np.sqrt(fma(tangent, tangent, one))
    sine = cosine * tangent
    half = sine / (one + cosine)
    rows[p], rows[q] = fma(-sine, fma(half, x, y), x), fma(sine, fma(-half, y, x), y)
    return True


def _completed(vectors: Array) -> Array:
    """A vector at right angles to the others, of the unit vector that these hold least of."""
    held = np.array([_chain(column) for column in vectors.T])
    out: Any = np.zeros(vectors.shape[1], vectors.dtype)
    out[int(np.argmin(held))] = 1
    for x in [*vectors, *vectors]:
        out = fma(-_products(x, out), x, out)
    return np.asarray(out / np.sqrt(_chain(out)))


def _scale(a: Array) -> Any:
    """The power of two by which the largest element becomes one from 1 to 2, as far as squares allow; 1 for none."""
    most, scale = max((x for x in np.abs(a).ravel() if x == x), default=a.dtype.type(0)), a.dtype.type(1)
    limit = a.dtype.type(2.0**1000 if a.dtype == np.float64 else 2.0**100)
    if 0 < most < np.inf:
        while most * scale >= 2 and scale > 1 / limit:
            scale = scale / 2
        while most * scale < 1 and scale < limit:
            scale = scale + scale
    return a.dtype.type(scale)


def rotations(a: Array) -> Array:
    """Of each singular value a row: its vectors and itself. Pairs are turned in ascending order until none needs it."""
    rows, columns = a.shape[-2:]
    least, both = min(rows, columns), rows + columns
    part = slice(0, rows) if rows >= columns else slice(rows, both)
    dtype = a.dtype.type
    share_lost = dtype(2.0**-200 if a.dtype == np.float64 else 2.0**-60)
    tolerance = dtype(2.0**-52 if a.dtype == np.float64 else 2.0**-23) * np.sqrt(dtype(max(rows, columns)))
    out = np.zeros((*a.shape[:-2], least, both + 1), a.dtype)
    for at in np.ndindex(*a.shape[:-2]):
        unit, scale = np.eye(least, dtype=a.dtype), _scale(a[at])
        scaled = scale * a[at]
        found = np.concatenate([scaled.T, unit] if rows >= columns else [unit, scaled], axis=1)
        total: Any = dtype(0)
        for row in found:
            total = total + _chain(row[part])
        cut = share_lost * total + (total - total)
        for _ in range(40):
            if not sum([_turned(found, p, q, part, tolerance, cut) for p in range(least) for q in range(p + 1, least)]):
                break
        squares = np.array([_chain(row[part]) for row in found], a.dtype)
        lengths = np.where(squares <= cut, dtype(0), np.sqrt(squares))
        found = np.concatenate([found, lengths[:, None]], axis=1)
        for i in range(least):
            best = i
            for r in range(i + 1, least):
                best = r if found[r, -1] > found[best, -1] else best
            found[[i, best]] = found[[best, i]]
        for j in range(least):
            lost = found[j, -1] == 0
            found[j, part] = _completed(found[:j, part]) if lost else found[j, part] / found[j, -1]
            found[j, -1] = found[j, -1] / scale
        out[at] = found
    return out

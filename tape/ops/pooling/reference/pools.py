"""The living definition of the bits, continued: pools.

As in `reference`, nothing here is shared with the kernels: windows are walked cell by cell, as the numerics
documentation says. ``rules`` has (kernel, stride, padding, dilation) for each spatial axis, or with the padding before,
the padding behind and whether the last window may hang over, or (outputs,) for windows that adapt.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import ceil, floor, prod
from typing import Any

import numpy as np

from .....base.arrays import Array
from ....numerics.math.reference.functions import exp, log
from ...reduce.reference.reductions import first_extreme

Cells = list[tuple[int, ...]]
AnyRules = Sequence[Sequence[int]]


def axis_windows(size: int, rule: Sequence[int]) -> list[list[int]]:
    """The real cells of each window along one axis."""
    if len(rule) == 1:
        (n,) = rule
        return [list(range(floor(Fraction(o * size, n)), ceil(Fraction((o + 1) * size, n)))) for o in range(n)]
    return [[c for c in window if 0 <= c < size] for window in sliding_cells(size, rule)]


def sliding_cells(size: int, rule: Sequence[int]) -> list[list[int]]:
    """The cells of each window along one axis, also those before it and behind it."""
    kernel, stride, low, dilation, high, overhang = (*rule, rule[2], 0)[:6] if len(rule) == 4 else rule
    span, end = dilation * (kernel - 1) + 1, size + high
    starts = list(range(-low, end - span + 1, stride))
    after = starts[-1] + stride if starts else -low
    if overhang and after - stride + span < end and after < size:
        starts.append(after)
    return [list(range(s, s + span, dilation)) for s in starts]


def windows(sizes: Sequence[int], rules: AnyRules) -> dict[tuple[int, ...], Cells]:
    """The cells of the window of each output, both in row-major order."""
    along = [axis_windows(n, rule) for n, rule in zip(sizes, rules, strict=True)]
    outputs = product(*[range(len(a)) for a in along])
    return {o: list(product(*[a[i] for a, i in zip(along, o, strict=True)])) for o in outputs}


def shape_of(held: dict[tuple[int, ...], Cells]) -> tuple[int, ...]:
    """The sizes of the outputs."""
    return tuple(n + 1 for n in max(held))


def pooled(function: Callable[[Array, Array], Any], rules: AnyRules, x: Array, other: Array | None = None) -> Array:
    """``function(cells, others)`` of every window of every plane of x; others are the same cells of another array."""
    spatial = x.ndim - len(rules)
    held = windows(x.shape[spatial:], rules)
    out = np.empty((*x.shape[:spatial], *shape_of(held)), x.dtype)
    for plane in np.ndindex(*x.shape[:spatial]):
        for o, cells in held.items():
            found = [np.array([a[plane + c] for c in cells], x.dtype) for a in (x, x if other is None else other)]
            out[plane + o] = function(found[0], found[1])
    return out


def spread(
    function: Callable[[Any, Array], Sequence[Any]],
    rules: AnyRules,
    sizes: Sequence[int],
    g: Array,
    x: Array | None = None,
) -> Array:
    """Each output's contributions ``function(g, cells)`` added at its cells, outputs in ascending order, from +0."""
    spatial = g.ndim - len(rules)
    held = windows(sizes, rules)
    out = np.zeros((*g.shape[:spatial], *sizes), g.dtype)
    for plane in np.ndindex(*g.shape[:spatial]):
        for o, cells in held.items():
            values = np.array([0 if x is None else x[plane + c] for c in cells], g.dtype)
            for c, contribution in zip(cells, function(g[plane + o], values), strict=True):
                if contribution is not None:
                    out[plane + c] = out[plane + c] + contribution
    return out


def max_pool(x: Array, rules: AnyRules) -> Array:
    """The largest cell."""
    return pooled(lambda cells, _: cells[first_extreme(cells, 1)], rules, x)


def max_pool_indices(x: Array, rules: AnyRules) -> Array:
    """The place in its plane of the first of the largest cells."""
    places = np.broadcast_to(
        np.arange(prod(x.shape[x.ndim - len(rules) :])).reshape(x.shape[x.ndim - len(rules) :]), x.shape
    )
    return pooled(lambda cells, others: others[first_extreme(cells, 1)], rules, x, places.astype(x.dtype)).astype(int)


def unpool_sources(indices: Array, size: Sequence[int]) -> Array:
    """For each cell the number of the last index that names it, or -1."""
    leading = indices.ndim - len(size)
    out = np.full((*indices.shape[:leading], *size), -1)
    for number, at in enumerate(np.ndindex(*indices.shape)):
        out[at[:leading]].reshape(-1)[indices[at]] = number
    return out


def max_unpool(x: Array, indices: Array, size: Sequence[int]) -> Array:
    """Zeros with each element written where its index says, in row-major order."""
    leading = x.ndim - len(size)
    out = np.zeros((*x.shape[:leading], *size), x.dtype)
    for at in np.ndindex(*x.shape):
        out[at[:leading]].reshape(-1)[indices[at]] = x[at]
    return out


def max_pool_pick(u: Array, x: Array, rules: AnyRules) -> Array:
    """``u`` where the largest cell of x stands first."""
    return pooled(lambda cells, others: others[first_extreme(cells, 1)], rules, x, u)


def max_pool_grad(g: Array, x: Array, rules: AnyRules) -> Array:
    """``g`` added where the largest cell stands first."""

    def contributions(g: Any, cells: Array) -> list[Any]:
        return [g if i == first_extreme(cells, 1) else None for i in range(len(cells))]

    return spread(contributions, rules, x.shape[x.ndim - len(rules) :], g, x)


def total(cells: Array) -> Any:
    """One chain from +0."""
    s = cells.dtype.type(0)
    for x in cells:
        s = s + x
    return s


def divisors(sizes: Sequence[int], rules: AnyRules, whole: bool, dtype: np.dtype[Any]) -> Array:
    """For each window the number of its real cells, or of those in the borders as well."""
    counts = [[len(cells) for cells in axis_windows(n, rule)] for n, rule in zip(sizes, rules, strict=True)]
    if whole:
        counts = [[len(real_or_border(n, rule, cells)) for cells in sliding_cells(n, rule)]
                  for n, rule in zip(sizes, rules, strict=True)]  # fmt: skip
    return np.array([prod(of_axes) for of_axes in product(*counts)], dtype).reshape([len(axis) for axis in counts])


def real_or_border(size: int, rule: Sequence[int], cells: Sequence[int]) -> list[int]:
    """The cells on an axis with its borders."""
    return [c for c in cells if -rule[2] <= c < size + rule[4 if len(rule) > 4 else 2]]


def avg_pool(x: Array, rules: AnyRules, whole: bool) -> Array:
    """The sum of the window, divided."""
    sums = pooled(lambda cells, _: total(cells), rules, x)
    return sums / divisors(x.shape[x.ndim - len(rules) :], rules, whole, x.dtype)


def avg_pool_grad(g: Array, sizes: Sequence[int], rules: AnyRules, whole: bool) -> Array:
    """``g`` divided, added at every cell."""
    shares = g / divisors(sizes, rules, whole, g.dtype)
    return spread(lambda g, cells: [g] * len(cells), rules, sizes, shares)


def pivot(cells: Array, beta: Any) -> Any:
    """The largest cell for positive beta, the smallest for negative; 0 if that is infinite or there are only NaNs."""
    numbers = cells[~np.isnan(cells)]
    found = (max if beta > 0 else min)(numbers, default=cells.dtype.type(np.inf))
    return cells.dtype.type(0) if np.isinf(found) else found


def exponentials(cells: Array, beta: Any) -> Array:
    """``exp((x - p)·BETA)``."""
    return exp((cells - pivot(cells, beta)) * beta)


def smooth_max_pool(x: Array, rules: AnyRules, beta: float) -> Array:
    """``p + log(s) / BETA``."""
    b = x.dtype.type(beta)
    return pooled(lambda cells, _: pivot(cells, b) + log(np.asarray(total(exponentials(cells, b))))[()] / b, rules, x)


def smooth_max_pool_grad(g: Array, x: Array, rules: AnyRules, beta: float) -> Array:
    """``(g / s)·exp((x - p)·BETA)`` added at every cell."""
    b = x.dtype.type(beta)

    def contributions(g: Any, cells: Array) -> list[Any]:
        e = exponentials(cells, b)
        return [(g / total(e)) * part for part in e]

    return spread(contributions, rules, x.shape[x.ndim - len(rules) :], g, x)


def smooth_max_pool_mean(u: Array, x: Array, rules: AnyRules, beta: float) -> Array:
    """The sum of ``u·exp((x - p)·BETA)``, divided by s."""
    b = x.dtype.type(beta)

    def mean(cells: Array, others: Array) -> Any:
        e = exponentials(cells, b)
        return total(others * e) / total(e)

    return pooled(mean, rules, x, u)

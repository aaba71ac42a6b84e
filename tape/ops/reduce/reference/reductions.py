"""The living definition of the bits, continued: reductions along axes that are no sums, and running sums.

As in `reference`, nothing here is shared with the kernels.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .....base.arrays import Array
from ....numerics.math.reference.functions import exp, log
from ....numerics.math.reference.sums import reduce_sum, row_sum


def reduced(x: Array, axis: Any, keepdims: bool, function: Callable[[Array], Any], dtype: Any = None) -> Array:
    """``function`` of the elements that each element of the result stands for, in row-major order."""
    given: Sequence[int] = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = [a % x.ndim for a in given] if x.ndim else []
    out = np.empty([1 if a in axes else n for a, n in enumerate(x.shape)], dtype or x.dtype)
    for at in np.ndindex(out.shape):
        index = tuple(slice(None) if a in axes else slice(i, i + 1) for a, i in enumerate(at))
        out[at] = function(x[index].reshape(-1))
    return out if keepdims else out.reshape([n for a, n in enumerate(x.shape) if a not in axes])


def first_extreme(row: Array, sign: int) -> int:
    """The position of the first largest (sign 1) or smallest (sign -1) element; NaN wins, -0 < +0."""
    best = 0
    for i in range(1, row.size):
        if not np.isnan(row[best]) and (np.isnan(row[i]) or _rank(row[i], sign) > _rank(row[best], sign)):
            best = i
    return best


def _rank(x: Any, sign: int) -> tuple[float, bool]:
    return sign * float(x), bool(np.signbit(x)) == (sign < 0)


def reduce_max(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """The largest element."""
    return reduced(x, axis, keepdims, lambda row: row[first_extreme(row, 1)])


def reduce_min(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """The smallest element."""
    return reduced(x, axis, keepdims, lambda row: row[first_extreme(row, -1)])


def argmax(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """The position of the first largest element among those reduced."""
    return reduced(x, axis, keepdims, lambda row: first_extreme(row, 1), np.int64)


def argmin(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """The position of the first smallest element among those reduced."""
    return reduced(x, axis, keepdims, lambda row: first_extreme(row, -1), np.int64)


def product(row: Sequence[Any] | Array, one: Any) -> Any:
    """One chain from 1."""
    total = one
    for value in row:
        total = total * value
    return total


def prod(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """The product in row-major order."""
    return reduced(x, axis, keepdims, lambda row: product(row, x.dtype.type(1)))


def prod_but_one(x: Array) -> Array:
    """Along the last axis, the product of the elements before, ascending, times that of those after, descending."""
    out, one = np.empty_like(x), x.dtype.type(1)
    for *batch, i in np.ndindex(x.shape):
        row = x[tuple(batch)]
        out[(*batch, i)] = product(row[:i], one) * product(row[:i:-1], one)
    return out


def cumsum(x: Array, axis: int) -> Array:
    """The running sum along an axis, from +0."""
    out = np.empty_like(x)
    source, target = np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0)
    total = np.zeros(source.shape[1:], x.dtype)
    for i, row in enumerate(source):
        total = total + row
        target[i] = total
    return out


def logsumexp(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """``p + log(sum(exp(x - p)))`` with p the maximum, or 0 where that is infinite."""
    return reduced(x, axis, keepdims, _log_sum_exp)


def _log_sum_exp(row: Array) -> Any:
    m = np.max(row) if row.size else row.dtype.type(-np.inf)
    p = row.dtype.type(0) if np.isinf(m) else m
    return p + log(np.asarray(row_sum(exp(row - p))))[()]


def var(x: Array, axis: Any = None, keepdims: bool = False, correction: int = 0) -> Array:
    """``sum(d * d) / (n - correction)`` with ``d = x - mean``, by the sums of reduce_sum and reduce_mean."""
    d = x - reduce_sum(x, axis, True, mean=True)
    total = reduce_sum(d * d, axis, keepdims)
    n = x.size // total.size if total.size else 0
    return np.asarray(total / x.dtype.type(max(n - correction, 0)))

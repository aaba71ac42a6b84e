"""The living definition of the bits: every sum in its fixed order, written slowly and plainly.

These functions follow the numerics documentation to the letter on numpy arrays of any size and share no
code with the kernels, which must agree with them bit for bit.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .....base.arrays import Array
from ...exact_fma import fma
from .functions import exp, log

LANES, ROW_BLOCK, CHAIN_BLOCK = 16, 4096, 256


def row_sum(values: Array) -> Any:
    """The sum of all elements in row-major order: sixteen lanes in blocks of 4096."""
    flat, zero = values.reshape(-1), values.dtype.type(0)
    total = zero
    for first in range(0, flat.size, ROW_BLOCK):
        lanes = [zero] * LANES
        for i, x in enumerate(flat[first : first + ROW_BLOCK]):
            lanes[i % LANES] = lanes[i % LANES] + x
        for half in (8, 4, 2, 1):
            for lane in range(half):
                lanes[lane] = lanes[lane] + lanes[lane + half]
        total = lanes[0] if first == 0 else total + lanes[0]
    return total


def matmul(a: Array, b: Array) -> Array:
    """``a @ b`` over the last two axes; b has a's leading axes or none.

    All outputs side by side: fma chains in blocks of 256, the block sums added left to right.
    """
    total = np.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)
    for first in range(0, a.shape[-1], CHAIN_BLOCK):
        acc = np.zeros_like(total)
        for k in range(first, min(first + CHAIN_BLOCK, a.shape[-1])):
            acc = fma(a[..., :, k, None], b[..., k, None, :], acc)
        with np.errstate(all="ignore"):
            total = acc if first == 0 else total + acc
    return total


def chain(a: Array, b: Array) -> Any:
    """The contraction of two vectors."""
    return matmul(a[None, :], b[:, None])[0, 0]


def reduce_sum(x: Array, axis: Any = None, keepdims: bool = False, mean: bool = False) -> Array:
    """The sum, or mean, over axes: by lanes if the last axis is among them, else by chains with ones."""
    given: Any = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes: tuple[int, ...] = tuple(sorted(a % x.ndim for a in given)) if x.ndim else ()
    kept = [a for a in range(x.ndim) if a not in axes]
    along_rows = not kept or x.ndim - 1 in axes
    out = np.empty([x.shape[a] for a in kept], x.dtype)
    for at in np.ndindex(out.shape):
        index: list[Any] = [slice(None)] * x.ndim
        for a, i in zip(kept, at, strict=True):
            index[a] = i
        terms = x[tuple(index)].reshape(-1)
        out[at] = row_sum(terms) if along_rows else chain(terms, np.ones_like(terms))
        if mean:
            out[at] = out[at] / x.dtype.type(terms.size)
    shape = [1 if a in axes else x.shape[a] for a in range(x.ndim)] if keepdims else out.shape
    return out.reshape(shape)


def row_max(x: Array) -> Any:
    """The largest element; NaN if there is one."""
    return x[np.isnan(x)][0] if np.isnan(x).any() else np.max(x)


def softmax(x: Array, axis: int = -1) -> Array:
    """``exp(x - m) / s`` along an axis."""
    return along(x, axis, lambda row: _shifted_exp(row) / row_sum(_shifted_exp(row)))


def log_softmax(x: Array, axis: int = -1) -> Array:
    """``(x - m) - log s`` along an axis."""
    return along(x, axis, lambda row: (row - row_max(row)) - log_sum(row))


def log_sum(row: Array) -> Any:
    """``log s`` of one row."""
    return log(np.asarray(row_sum(_shifted_exp(row))))[()]


def _shifted_exp(row: Array) -> Array:
    return exp(row - row_max(row))


def along(x: Array, axis: int, function: Callable[[Array], Array]) -> Array:
    """``function`` applied to each vector along an axis."""
    out = np.empty_like(x)
    moved, result = np.moveaxis(x, axis, -1), np.moveaxis(out, axis, -1)
    if x.shape[axis]:
        for at in np.ndindex(moved.shape[:-1]):
            result[at] = function(moved[at])
    return out

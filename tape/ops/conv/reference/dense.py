"""Convolutions as the bit contract states them: all outputs side by side, one term of their chains after the other.

The functions take (N, C, *spatial) and (O, C/groups, *kernel) arrays; ``low`` is the padding before each axis, and
whatever else is read outside an array is padding too. They share no code with the kernels, which must agree bit
for bit.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

import numpy as np
import numpy.typing as npt

from .....base.arrays import Array
from ....numerics.exact_fma import fma
from ....numerics.math.reference.sums import CHAIN_BLOCK

AnySizes = Sequence[int]
Terms = Iterator[tuple[Array, Array]]


def conv(
    x: Array, weight: Array, out: AnySizes, stride: AnySizes, low: AnySizes, dilation: AnySizes, groups: int
) -> Array:
    """Each output contracts over (channel, kernel axes)."""
    w, xs, axes = _rows_grouped(weight, groups), _grouped(x, groups), range(len(out))

    def terms(g: int) -> Terms:
        for c, *tap in np.ndindex(*weight.shape[1:]):
            at = [tap[a] * dilation[a] - low[a] + stride[a] * np.arange(out[a]) for a in axes]
            yield _read(xs[:, g, c], at)[:, None], _column(w[(g, slice(None), c, *tap)], len(out))

    shape = (len(x), w.shape[1], *out)
    return np.concatenate([_contracted(terms(g), shape, x.dtype) for g in range(groups)], 1)


def conv_input_grad(
    g: Array, weight: Array, size: AnySizes, stride: AnySizes, low: AnySizes, dilation: AnySizes, groups: int
) -> Array:
    """Each input contracts over (output channel, the kernel's taps of its residue class)."""
    w, gs, axes = _rows_grouped(weight, groups), _grouped(g, groups), range(len(size))
    out = np.empty((len(g), groups, w.shape[2], *size), g.dtype)

    def terms(group: int, residues: AnySizes, count: AnySizes) -> Terms:
        for o, *tap in np.ndindex(w.shape[1], *w.shape[3:]):
            ahead = [residues[a] + low[a] - tap[a] * dilation[a] for a in axes]
            if all(ahead[a] % stride[a] == 0 for a in axes):
                at = [ahead[a] // stride[a] + np.arange(count[a]) for a in axes]
                yield _read(gs[:, group, o], at)[:, None], _column(w[(group, o, slice(None), *tap)], len(size))

    for residues in product(*map(range, stride)):
        places = tuple(slice(r, None, s) for r, s in zip(residues, stride, strict=True))
        for group in range(groups):
            index: Any = (slice(None), group, slice(None), *places)
            part = out[index]
            part[...] = _contracted(terms(group, residues, part.shape[2:]), part.shape, g.dtype)
    return out.reshape(len(g), groups * w.shape[2], *size)


def conv_weight_grad(
    x: Array, g: Array, kernel: AnySizes, stride: AnySizes, low: AnySizes, dilation: AnySizes, groups: int
) -> Array:
    """Each weight contracts over (sample, output position)."""
    xs, gs, axes = (
        _grouped(x, groups),
        g.reshape(len(g), groups, g.shape[1] // groups, *g.shape[2:]),
        range(len(kernel)),
    )

    def terms(group: int) -> Terms:
        for n, *place in np.ndindex(len(x), *g.shape[2:]):
            at = [place[a] * stride[a] - low[a] + dilation[a] * np.arange(kernel[a]) for a in axes]
            yield _read(xs[n, group], at), _column(gs[(n, group, slice(None), *place)], len(kernel) + 1)

    shape = (gs.shape[2], xs.shape[2], *kernel)
    return np.concatenate([_contracted(terms(group), shape, x.dtype) for group in range(groups)])


def with_bias(y: Array, bias: Array | None) -> Array:
    """``y`` with the bias of each channel added."""
    with np.errstate(all="ignore"):
        return y if bias is None else np.asarray(y + _column(bias, y.ndim - 2))


def _contracted(terms: Terms, shape: AnySizes, dtype: np.dtype[Any]) -> Array:
    """Sums of products: chains from +0 in blocks of 256, the block sums added from left to right."""
    total = None
    while block := list(islice(terms, CHAIN_BLOCK)):
        chain = np.zeros(shape, dtype)
        for a, b in block:
            chain = fma(a, b, chain)
        with np.errstate(all="ignore"):
            total = chain if total is None else total + chain
    return np.zeros(shape, dtype) if total is None else total


def _grouped(x: Array, groups: int) -> Array:
    """Channels by groups, and one zero behind the end of each spatial axis, which stands for all that is outside."""
    behind = np.pad(x, ((0, 0), (0, 0), *((0, 1),) * (x.ndim - 2)))
    return behind.reshape(len(x), groups, x.shape[1] // groups, *behind.shape[2:])


def _rows_grouped(weight: Array, groups: int) -> Array:
    return weight.reshape(groups, len(weight) // groups, *weight.shape[1:])


def _read(x: Array, at: Sequence[npt.NDArray[np.intp]]) -> Array:
    """The elements at the product of some positions along the last axes, zero outside."""
    sizes = x.shape[x.ndim - len(at) :]
    inside = [np.where((i >= 0) & (i < n - 1), i, n - 1) for i, n in zip(at, sizes, strict=True)]
    index: Any = (..., *np.ix_(*inside))
    found: Array = x[index]
    return found


def _column(values: Array, rank: int) -> Array:
    """A vector with ``rank`` axes behind it."""
    return values.reshape(len(values), *(1,) * rank)

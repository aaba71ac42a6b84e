"""The additive digest of a tensor: those of its parts add up to it, however it was cut."""

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from ....base.arrays import Array
from .digest import Algorithm, canonical, preamble
from .sketch import split_mix

ADDITIVE_BYTES = 16

_BLOCK = 1 << 13
"""Elements that are summed up at a time: what is needed for it stays in a core's cache."""
_ONE, _HALF, _LOW = np.uint64(1), np.uint64(32), np.uint64((1 << 32) - 1)


def additive_digest(array: Array, whole: Sequence[int] | None = None, offsets: Sequence[int] = ()) -> bytes:
    """The digest of an array of any dtype of the format, or what a part of a tensor adds to that of the whole one.

    It is the sum of (b + 1) · mix(i) modulo 2^128, in 16 bytes, the lowest first; b is an element's bits as an unsigned
    number, NaN in its canonical form, and i the element's number in the whole tensor in row-major order. mix(i) has the
    lower word `split_mix(2i) | 1` and the upper word `split_mix(2i + 1)`. Complex numbers are pairs along a last axis.

    Args:
        array: the part.
        whole, offsets: the shape of the whole tensor, and where in it the part begins. Default: the part is all of it.

    >>> x = np.arange(6.0).reshape(2, 3)
    >>> parts = additive_digest(x[:, :1], (2, 3), (0, 0)), additive_digest(x[:, 1:], (2, 3), (0, 1))
    >>> added(parts) == additive_digest(x)
    True
    """
    shape = array.shape if whole is None else tuple(whole)
    begins = tuple(offsets) or (0,) * len(shape)
    elements = canonical(array)
    pair = elements.shape[array.ndim :]
    bits = elements.reshape(-1).view(f"<u{elements.itemsize}")
    axes = tuple(zip((*array.shape, *pair), (*shape, *pair), (*begins, *(0 for _ in pair)), strict=True))
    total = 0
    for begin in range(0, bits.size, _BLOCK):
        some = bits[begin : begin + _BLOCK].astype(np.uint64)
        total += _sum(some, _positions(np.arange(begin, begin + some.size, dtype=np.uint64), axes))
    return stored(total)


def added(digests: Iterable[bytes]) -> bytes:
    """The digest of a tensor from those of its parts; of none, that of an empty one.

    >>> added([]) == bytes(16)
    True
    """
    return stored(sum(int.from_bytes(digest, "little") for digest in digests))


def value_digest(algorithm: Algorithm, dtype: str, shape: Sequence[int], additive: bytes) -> bytes:
    """The digest of a value on the way, in a trace whose header says so: of dtype, shape and additive digest."""
    return algorithm.hash(preamble(dtype, shape) + additive)


def stored(total: int) -> bytes:
    """A sum as it is stored, modulo 2^128."""
    return (total % (1 << 8 * ADDITIVE_BYTES)).to_bytes(ADDITIVE_BYTES, "little")


def _positions(numbers: Array, axes: Sequence[tuple[int, int, int]]) -> Array:
    """Numbers of elements in the whole tensor from those in the part; an axis has its length in both, and an offset."""
    inner = len(axes)
    while inner > 1 and axes[inner - 1][0] == axes[inner - 1][1]:
        inner -= 1
    stride = prod(whole for _, whole, _ in axes[inner:])
    if inner <= 1:  # lines that lie together in both
        begin = axes[0][2] * stride if axes else 0
        return numbers + np.uint64(begin)
    found = numbers % np.uint64(stride)
    numbers = numbers // np.uint64(stride)
    for part, whole, offset in reversed(axes[:inner]):
        found += (numbers % np.uint64(part) + np.uint64(offset)) * np.uint64(stride)
        numbers, stride = numbers // np.uint64(part), stride * whole
    return found


def _sum(bits: Array, positions: Array) -> int:
    """The sum of (b + 1) · mix(i) of a block, of which the products are taken in halves of words."""
    twice = positions + positions
    low, high = split_mix(twice) | _ONE, split_mix(twice + _ONE)
    lower, upper = _total((bits & _LOW) * (low & _LOW)), _total((bits >> _HALF) * (low >> _HALF))
    crossed = _total((bits & _LOW) * (low >> _HALF)) + _total((bits >> _HALF) * (low & _LOW))
    raised = int(np.add.reduce((bits + _ONE) * high))
    return lower + (crossed << 32) + (upper << 64) + _total(low) + (raised << 64)


def _total(words: Array) -> int:
    """The exact sum of less than 2^32 words."""
    return int(np.add.reduce(words & _LOW)) + (int(np.add.reduce(words >> _HALF)) << 32)

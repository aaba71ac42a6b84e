"""The additive digest of a tensor: those of its parts add up to it, however it was cut."""

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from ....base.arrays import Array
from .digest import Algorithm, canonical, preamble
from .sketch import split_mix

ADDITIVE_BYTES = 16
SUMS = 9
"""Words from which the digest of a block follows."""

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
    rows = list[Array]()
    for begin in range(0, bits.size, _BLOCK):
        some = bits[begin : begin + _BLOCK].astype(np.uint64)
        rows.append(_sums(some, _positions(np.arange(begin, begin + some.size, dtype=np.uint64), axes)))
    return of_sums(rows)


def value_digest(algorithm: Algorithm, dtype: str, shape: Sequence[int], additive: bytes) -> bytes:
    """The digest of a value on the way, in a trace whose header says so: of dtype, shape and additive digest."""
    return algorithm.hash(preamble(dtype, shape) + additive)


def added(digests: Iterable[bytes]) -> bytes:
    """The digest of a tensor from those of its parts; of none, that of an empty one.

    >>> added([]) == bytes(16)
    True
    """
    return _stored(sum(int.from_bytes(digest, "little") for digest in digests))


def _stored(total: int) -> bytes:
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


def of_sums(rows: Iterable[Array]) -> bytes:
    """The digest from a row of `SUMS` unsigned words for each block of the tensor.

    With b an element's bits, m the lower and M the upper word of mix, and halves of words as in b = b0 + 2^32 b1, a row
    has the sums of b0 · m0, of b0 · m1 + b1 · m0, of b1 · m1 and of m, first those of the lower halves of these words,
    then of the upper ones; and the sum of (b + 1) · M modulo 2^64.
    """
    total = 0
    for row in rows:
        *halves, raised = map(int, row)
        lower, crossed, upper, mixed = (low + (high << 32) for low, high in zip(halves[:4], halves[4:], strict=True))
        total += lower + mixed + (crossed << 32) + (upper + raised << 64)
    return _stored(total)


def _sums(bits: Array, positions: Array) -> Array:
    """The row of a block."""
    twice = positions + positions
    low, high = split_mix(twice) | _ONE, split_mix(twice + _ONE)
    (b0, b1), (m0, m1) = _halves(bits), _halves(low)
    words = [(b0 * m0,), (b0 * m1, b1 * m0), (b1 * m1,), (low,)]
    halves = [np.add.reduce([np.add.reduce(_halves(word)[i]) for word in each]) for i in (0, 1) for each in words]
    return np.array([*halves, np.add.reduce((bits + _ONE) * high)])


def _halves(words: Array) -> tuple[Array, Array]:
    return words & _LOW, words >> _HALF

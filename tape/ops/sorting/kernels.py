"""Kernels that find the order of elements, by integers that are ordered as floats are, and that show positions.

Every float has a place: -0 below +0, all NaNs one above all others. Equal elements stand in the order of their
positions, so an order has one result, whatever the algorithm.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np
from numba import njit

from ...numerics.engine.code_for import GPU
from ...numerics.engine.intrinsics import real, retyped, stack, word
from ...numerics.engine.kernel import kernel, share, vector, vector_as
from ...numerics.simd.lanes import inlined
from ...numerics.simd.operations import bits_of, select

INT64 = np.int64(0)

BYTE = 256
"""Values of a byte."""

COUNTS = 8 * BYTE
"""Of all bytes of a key."""

SHORT = 64
"""Elements of a row that are compared with each other sooner than the values of a byte are counted."""

ASCENDING, DESCENDING, UNSIGNED = 0, -1, -(1 << 63)
"""The bits of a key that are flipped: all of them, and it is as far from the other end; the sign, and it is none."""


@kernel
def order_keys(table, ints, part, parts):
    """For each float an integer of its size, such that they are ordered as the floats are, NaN last; ints: n."""
    start, n = share(word(ints, 0), part, parts)
    out, x = vector_as(table, INT64, 0, start, n), vector(table, 1, start, n)
    sign = np.int64(bits_of(real(table, -0.0)))
    for i in range(n):
        bits = np.int64(bits_of(x[i]))
        key = select(bits < 0, sign - bits - 1, bits)  # below 0 bits grow with the magnitude
        out[i] = select(x[i] == x[i], key, -1 - sign)
    return 0


@njit
def _rank(keys, i, flip):
    """How many keys stand before the ``i``-th."""
    own, before = keys[i] ^ flip, 0
    for j in range(keys.size):
        key = keys[j] ^ flip
        before += (key < own) | ((key == own) & (j < i))
    return before


@njit
def _count_bytes(counts, keys, flip, width):
    """How often each of the last ``width`` bytes of the keys has each value."""
    for i in range(width * BYTE):
        counts[i] = 0
    for i in range(keys.size):
        for byte in range(width):
            counts[byte * BYTE + ((keys[i] ^ flip) >> 8 * byte & BYTE - 1)] += 1


@njit
def _sort_by_byte(target, source, keys, flip, byte, counts):
    """Positions in the order of one byte of their keys, those of equal bytes as they were."""
    first, total = byte * BYTE, 0
    for value in range(first, first + BYTE):
        counts[value], total = total, total + counts[value]
    for i in range(source.size):
        value = first + ((keys[source[i]] ^ flip) >> 8 * byte & BYTE - 1)
        target[counts[value]] = source[i]
        counts[value] += 1


@njit
def _radix_sort(first, second, keys, flip, width, counts):
    """Positions in the order of their keys, in ``first``: by each byte, the last one first (Knuth, TAOCP 3, 5.2.5)."""
    flip ^= 1 << 8 * width - 1  # as numbers without a sign
    _count_bytes(counts, keys, flip, width)
    n, source, target = keys.size, first, second
    for i in range(n):
        first[i] = i
    for byte in range(width):
        if counts[byte * BYTE + ((keys[0] ^ flip) >> 8 * byte & BYTE - 1)] < n:  # else they are all alike
            _sort_by_byte(target, source, keys, flip, byte, counts)
            source, target = target, source
    for i in range(n):
        first[i] = source[i]


@inlined
def _rank_rows(table, ints, part, parts):
    """Every position where its rank says, by itself."""
    n, flip = word(ints, 1), word(ints, 2)
    start, count = share(word(ints, 0) * n, part, parts)
    for place in range(start, start + count):
        row = place // n * n
        vector(table, 0, row, n)[_rank(vector(table, 1, row, n), place - row, flip)] = place - row
    return 0


@kernel
def argsort_rows(table, ints, part, parts):
    """``out[0, r]`` are the positions of ``keys[r]`` in order; ``out[1]`` is room to work.

    ints: rows, n, `ASCENDING`, `DESCENDING` or `UNSIGNED`, bytes of a key that are not but its sign again.
    """
    total, n, flip = word(ints, 0), word(ints, 1), word(ints, 2)
    if GPU or n < SHORT:
        return _rank_rows(table, ints, part, parts)
    start, rows = share(total, part, parts)
    counts = stack(retyped(table, INT64), COUNTS)
    for r in range(start, start + rows):
        first, second = vector(table, 0, r * n, n), vector(table, 0, (total + r) * n, n)
        keys = vector(table, 1, r * n, n)
        _radix_sort(first, second, keys, flip, word(ints, 3), counts)
    return 0


@njit
def _put(out, place, keys, flip, i):
    """A position among those that stand in order before ``place``: behind all whose keys are not greater."""
    key = keys[i] ^ flip
    while place > 0 and key < (keys[out[place - 1]] ^ flip):
        out[place] = out[place - 1]
        place -= 1
    out[place] = i


@njit
def _first_few(out, keys, flip):
    """The positions of the first keys in order, as many as ``out`` holds: those found so far are kept in order."""
    k = out.size
    for i in range(k):
        _put(out, i, keys, flip, i)
    bound = keys[out[k - 1]] ^ flip
    for i in range(k, keys.size):
        if (keys[i] ^ flip) < bound:
            _put(out, k - 1, keys, flip, i)
            bound = keys[out[k - 1]] ^ flip


@kernel
def argtopk_rows(table, ints, part, parts):
    """``out[r]`` are the positions of the first keys of ``keys[r]`` in order; ints: rows, n, how many, the order."""
    start, rows = share(word(ints, 0), part, parts)
    n, k, flip = word(ints, 1), word(ints, 2), word(ints, 3)
    for r in range(start, start + rows if k else start):
        _first_few(vector(table, 0, r * k, k), vector(table, 1, r * n, n), flip)
    return 0


@kernel
def one_hot(table, ints, part, parts):
    """``out[r, indices[r]] = 1`` among zeros; arrays: out, indices; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n, indices = word(ints, 1), vector_as(table, INT64, 1, start, rows)
    for r in range(rows):
        out = vector(table, 0, (start + r) * n, n)
        out[:] = real(table, 0.0)
        if not 0 <= indices[r] < n:
            return start + r + 1
        out[indices[r]] = real(table, 1.0)
    return 0

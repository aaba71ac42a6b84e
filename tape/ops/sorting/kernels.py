"""Kernels that find the order of elements, by integers that are ordered as floats are, and that show positions.

Every float has a place: -0 below +0, all NaNs one above all others. Equal elements stand in the order of their
positions, so an order has one result, whatever the algorithm.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np
from numba import njit

from ...numerics.engine.intrinsics import real, word
from ...numerics.engine.kernel import kernel, share, vector, vector_as
from ...numerics.simd.operations import bits_of, select

INT64 = np.int64(0)
LAST = np.int64((1 << 63) - 1)
"""The key of NaN."""


@kernel
def order_keys(table, ints, part, parts):
    """For each float an integer, such that the integers are ordered as the floats are; ints: n."""
    start, n = share(word(ints, 0), part, parts)
    out, x = vector_as(table, INT64, 0, start, n), vector(table, 1, start, n)
    sign = np.int64(bits_of(real(table, -0.0)))
    for i in range(n):
        bits = np.int64(bits_of(x[i]))
        key = select(bits < 0, sign - bits - 1, bits)  # below 0 bits grow with the magnitude
        out[i] = select(x[i] == x[i], key, LAST)
    return 0


@njit
def _merge(target, source, keys, flip, start, middle, stop):
    """Two ordered runs of positions, before and behind the middle, as one; of equal keys the left one is first."""
    left, right = start, middle
    for k in range(start, stop):
        if left < middle and (right == stop or (keys[source[left]] ^ flip) <= (keys[source[right]] ^ flip)):
            target[k] = source[left]
            left += 1
        else:
            target[k] = source[right]
            right += 1


@njit
def _merge_sort(first, second, keys, flip):
    """Positions in the order of their keys, in ``first``: ever longer runs, from one array to the other."""
    n, width, passes = keys.size, 1, 0
    while width < n:
        width, passes = 2 * width, passes + 1
    source, target = first, second
    if passes % 2:
        source, target = second, first
    for i in range(n):
        first[i] = second[i] = i
    width = 1
    for _ in range(passes):
        for start in range(0, n, 2 * width):
            _merge(target, source, keys, flip, start, min(start + width, n), min(start + 2 * width, n))
        source, target, width = target, source, 2 * width


@kernel
def argsort_rows(table, ints, part, parts):
    """``out[r, 0]`` are the positions of ``keys[r]`` in order, ``out[r, 1]`` is room to work.

    ints: rows, n, whether the order is descending. A key with all its bits flipped is as far from the other end.
    """
    start, rows = share(word(ints, 0), part, parts)
    n, flip = word(ints, 1), -word(ints, 2)
    for r in range(start, start + rows):
        first, second = vector(table, 0, 2 * r * n, n), vector(table, 0, (2 * r + 1) * n, n)
        _merge_sort(first, second, vector(table, 1, r * n, n), flip)
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

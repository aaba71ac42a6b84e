"""Sums in the fixed order of the bit contract: sixteen lanes along rows, one chain down columns.

*Along rows* (the reduced elements lie next to each other): blocks of 4096; inside a block element ``i`` is
added to lane ``i mod 16`` in ascending order, the lanes start at +0 and are folded by
``lane[l] += lane[l + h]`` for h = 8, 4, 2, 1. *Down columns*: blocks of 256, inside a block one chain from
+0. In both the total is the first block's sum, to which the others are added in order.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from .intrinsics import real, stack, word
from .kernel import kernel, share, vector

LANES = 16
ROW_BLOCK = 4096
CHAIN_BLOCK = 256
COLUMNS = 64
"""How many columns are summed side by side; any number gives the same bits."""


@njit(inline="always")
def fold(lanes):
    """The sum of sixteen lanes: halves are added until one is left."""
    half = LANES // 2
    while half > 0:
        for lane in range(half):
            lanes[lane] += lanes[lane + half]
        half //= 2
    return lanes[0]


@njit(inline="always")
def clear(lanes, zero):
    """Every lane to +0."""
    for lane in range(LANES):
        lanes[lane] = zero


@njit(inline="always")
def row_block(first, size):
    """Of the block that begins at ``first``: where its last whole group of lanes ends, and where it ends."""
    stop = min(first + ROW_BLOCK, size)
    return first + (stop - first) // LANES * LANES, stop


@njit
def row_sum(x, zero, lanes):
    """The sum of a contiguous vector; +0 if it is empty."""
    total = zero
    for first in range(0, x.size, ROW_BLOCK):
        whole, stop = row_block(first, x.size)
        clear(lanes, zero)
        for i in range(first, whole, LANES):
            for lane in range(LANES):
                lanes[lane] += x[i + lane]
        for i in range(whole, stop):
            lanes[i - whole] += x[i]
        block = fold(lanes)
        total = block if first == 0 else total + block
    return total


@njit
def square_sum(x, zero, lanes):
    """The sum of the squares of a contiguous vector, rounded before they are added; +0 if it is empty."""
    total = zero
    for first in range(0, x.size, ROW_BLOCK):
        whole, stop = row_block(first, x.size)
        clear(lanes, zero)
        for i in range(first, whole, LANES):
            for lane in range(LANES):
                lanes[lane] += x[i + lane] * x[i + lane]
        for i in range(whole, stop):
            lanes[i - whole] += x[i] * x[i]
        block = fold(lanes)
        total = block if first == 0 else total + block
    return total


@kernel
def sum_rows(table, ints, part, parts):
    """``out[r] = sum_i x[r, i]``; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n = word(ints, 1)
    out, lanes = vector(table, 0, start, rows), stack(table, LANES)
    for r in range(rows):
        out[r] = row_sum(vector(table, 1, (start + r) * n, n), real(table, 0.0), lanes)
    return 0


@kernel
def mean_rows(table, ints, part, parts):
    """``out[r] = sum_i x[r, i] / n``; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n = word(ints, 1)
    out, lanes = vector(table, 0, start, rows), stack(table, LANES)
    for r in range(rows):
        out[r] = row_sum(vector(table, 1, (start + r) * n, n), real(table, 0.0), lanes) / real(table, n)
    return 0


@njit
def _column_sums(table, ints, part, parts, divisor):
    outer, rows, columns = word(ints, 0), word(ints, 1), word(ints, 2)
    start, count = share(columns, part, parts)
    chain, zero = stack(table, COLUMNS), real(table, 0.0)
    for o in range(outer):
        for j in range(start, start + count, COLUMNS):
            width = min(COLUMNS, start + count - j)
            out = vector(table, 0, o * columns + j, width)
            out[:] = zero
            for first in range(0, rows, CHAIN_BLOCK):
                chain[:width] = zero
                for r in range(first, min(first + CHAIN_BLOCK, rows)):
                    x = vector(table, 1, (o * rows + r) * columns + j, width)
                    for c in range(width):
                        chain[c] += x[c]
                for c in range(width):
                    out[c] = chain[c] if first == 0 else out[c] + chain[c]
            for c in range(width):
                out[c] = out[c] / divisor
    return 0


@kernel
def sum_columns(table, ints, part, parts):
    """``out[o, j] = sum_r x[o, r, j]``; ints: outer, rows, columns."""
    return _column_sums(table, ints, part, parts, real(table, 1.0))


@kernel
def mean_columns(table, ints, part, parts):
    """``out[o, j] = sum_r x[o, r, j] / rows``; ints: outer, rows, columns."""
    return _column_sums(table, ints, part, parts, real(table, word(ints, 1)))


@kernel
def mean_squared_difference(table, ints, part, parts):
    """``out = sum_i (a[i] - b[i])**2 / n``, the squares rounded before they are added; ints: n."""
    _, mine = share(1, part, parts)
    n, zero = word(ints, 0), real(table, 0.0)
    a, b, lanes = vector(table, 1, 0, n), vector(table, 2, 0, n), stack(table, LANES)
    total = zero
    for first in range(0, n * mine, ROW_BLOCK):
        whole, stop = row_block(first, n)
        clear(lanes, zero)
        for i in range(first, whole, LANES):
            for lane in range(LANES):
                difference = a[i + lane] - b[i + lane]
                lanes[lane] += difference * difference
        for i in range(whole, stop):
            difference = a[i] - b[i]
            lanes[i - whole] += difference * difference
        block = fold(lanes)
        total = block if first == 0 else total + block
    if mine:
        vector(table, 0, 0, 1)[0] = total / real(table, n)
    return 0

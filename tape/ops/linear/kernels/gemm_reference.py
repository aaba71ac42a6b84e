"""The product as the bit contract states it, one element after the other: slow, and the same bits as `gemm`.

It takes gemm's table and words, so that a plan can run it in gemm's place.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.simd.operations import fma, select
from ....numerics.simd.pack import PANEL_VECTORS, itemsize, vector_size
from ....numerics.simd.sums import CHAIN_BLOCK
from . import product as w


@njit(inline="always")
def _total(table, a, a_step, b, b_step, depth):
    """``sum_k a[k] * b[k]`` by blocks, from starts and by steps in elements."""
    total = real(table, 0.0)
    for first in range(0, depth, CHAIN_BLOCK):
        chain = real(table, 0.0)
        for k in range(first, min(first + CHAIN_BLOCK, depth)):
            chain = fma(vector(table, w.A, a + k * a_step, 1)[0], vector(table, w.B, b + k * b_step, 1)[0], chain)
        total = chain if first == 0 else total + chain
    return total


@njit(inline="always")
def _sum_of_products(table, ints, a, a_step, b, b_step, addend):
    """The totals of all products of the batch, added in their order to what is at a place among the addends."""
    size, total = itemsize(table), real(table, 0.0)
    for i in range(word(ints, w.BATCH)):
        a_first, b_first = a + i * word(ints, w.A_GROUP) // size, b + i * word(ints, w.B_GROUP) // size
        more = _total(table, a_first, a_step, b_first, b_step, word(ints, w.K))
        before = total if i else (vector(table, w.FIRST_OPTIONAL, addend, 1)[0] if word(ints, w.ADDED) else -total)
        total = before + more
    return total


@njit(inline="always")
def _column(table, ints, batch, j):
    """Where a column of b begins, and how far it is to its next term, in elements."""
    size, width = itemsize(table), PANEL_VECTORS * vector_size() // itemsize(table)
    if word(ints, w.PANELS):
        return (j - j % width) * word(ints, w.B_COLUMN) // size + j % width, width
    b = w.matrix(ints, 0, batch, w.B_GROUP, w.B_MATRIX) + j * word(ints, w.B_COLUMN)
    return b // size, word(ints, w.B_ROW) // size


@kernel
def gemm_reference(table, ints, part, parts):
    """`gemm`, one element after the other; shares are ranges of rows counted through all matrices."""
    m, n, size, zero = word(ints, w.M), word(ints, w.N), itemsize(table), real(table, 0.0)
    mask, addend, _ = w.optional(ints)
    start, count = share((1 if word(ints, w.SUMMED) else word(ints, w.BATCH)) * m, part, parts)
    for row in range(start, start + count):
        batch, i = row // m, row % m
        a = (w.matrix(ints, 0, batch, w.A_GROUP, w.A_MATRIX) + i * word(ints, w.A_ROW)) // size
        for j in range(n):
            b, b_step = _column(table, ints, batch, j)
            a_step, added = word(ints, w.A_COLUMN) // size, word(ints, w.ADDED) // size
            if word(ints, w.SUMMED):
                total = _sum_of_products(table, ints, a, a_step, b, b_step, row * added + j)
                vector(table, w.OUT, row * n + j, 1)[0] = total
                continue
            total = _total(table, a, a_step, b, b_step, word(ints, w.K))
            if word(ints, w.BIAS):
                total = total + vector(table, w.FIRST_OPTIONAL, j, 1)[0]
            if word(ints, w.RELU):
                total = select(total <= zero, zero, total)
            if word(ints, w.MASK):
                kept = vector(table, mask, row * n + j, 1)[0] > zero
                total = select(kept, total, zero)
            if word(ints, w.ADDED):
                total = vector(table, addend, row * added + j, 1)[0] + total
            vector(table, w.OUT, row * n + j, 1)[0] = total
    return 0

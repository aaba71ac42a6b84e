"""Matrix products: per output element one fma chain over the contraction index, in blocks of 256.

``total = s_0, then total + s_1, …`` where ``s_b`` is the chain ``acc = fma(a, b, acc)`` from +0 over block b.
Tiles run over outputs only, so their size cannot be seen in the bits.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from .intrinsics import fma, real, stack, word
from .kernel import kernel, share, vector
from .reduce import CHAIN_BLOCK

COLUMNS = 64

# Positions of the words: sizes, then strides in elements (batch, row, column) of a and (batch, row) of b.
BATCH, M, N, K, A_BATCH, A_ROW, A_COLUMN, B_BATCH, B_ROW = range(9)


@njit
def _tile(out, table, a_start, a_step, b_start, b_step, k, chain, zero):
    """One row of up to `COLUMNS` outputs: ``out[j] = sum_k a[k] * b[k, j]``; steps may be negative."""
    width = out.size
    out[:] = zero
    for first in range(0, k, CHAIN_BLOCK):
        for j in range(COLUMNS):
            chain[j] = zero
        for p in range(first, min(first + CHAIN_BLOCK, k)):
            b = vector(table, 2, b_start + p * b_step, width)
            factor = vector(table, 1, a_start + p * a_step, 1)[0]
            if width == COLUMNS:
                for j in range(COLUMNS):
                    chain[j] = fma(factor, b[j], chain[j])
            else:
                for j in range(width):
                    chain[j] = fma(factor, b[j], chain[j])
        for j in range(width):
            out[j] = chain[j] if first == 0 else out[j] + chain[j]


@njit
def _product(table, ints, part, parts, with_bias):
    m, n, k = word(ints, M), word(ints, N), word(ints, K)
    start, count = share(word(ints, BATCH) * m, part, parts)
    chain, zero = stack(table, COLUMNS), real(table, 0.0)
    for row in range(start, start + count):
        batch, i = row // m, row % m
        a_start = batch * word(ints, A_BATCH) + i * word(ints, A_ROW)
        for j in range(0, n, COLUMNS):
            out = vector(table, 0, row * n + j, min(COLUMNS, n - j))
            b_start = batch * word(ints, B_BATCH) + j
            _tile(out, table, a_start, word(ints, A_COLUMN), b_start, word(ints, B_ROW), k, chain, zero)
            if with_bias:
                bias = vector(table, 3, j, out.size)
                for c in range(out.size):
                    out[c] = out[c] + bias[c]
    return 0


@kernel
def gemm(table, ints, part, parts):
    """``out[b] = a[b] @ b[b]``; a has any strides, the columns of b lie next to each other."""
    return _product(table, ints, part, parts, False)


@kernel
def gemm_bias(table, ints, part, parts):
    """``out[b] = a[b] @ b[b] + bias``; arrays: out, a, b, bias."""
    return _product(table, ints, part, parts, True)

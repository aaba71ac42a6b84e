"""Triangular factors and triangular systems: one chain for each element, in the order in which rows are solved.

What is read of a matrix is one triangle. Inner loops run along rows, across the chains.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np
from numba import njit

from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.simd.operations import fma, select, sqrt


@njit(inline="always")
def _subtract(out, factor, x, start):
    """``out = fma(-factor, x, out)`` from a position on."""
    for j in range(start, out.size):
        out[j] = fma(-factor, x[j], out[j])


@kernel
def cholesky(table, ints, part, parts):
    """The upper triangular u with ``uᵀu = x``, of which the upper triangle is read; ints: matrices, n.

    A pivot that is not above 0 gives NaN, in its row and in what follows from it.
    """
    first, count = share(word(ints, 0), part, parts)
    n = word(ints, 1)
    for row in range(first * n, (first + count) * n):
        i = row % n
        out, x = vector(table, 0, row * n, n), vector(table, 1, row * n, n)
        for j in range(n):
            out[j] = select(j < i, real(table, 0.0), x[j])
        for k in range(i):
            above = vector(table, 0, (row - i + k) * n, n)
            _subtract(out, above[i], above, i)
        pivot = out[i]
        root = select(pivot > real(table, 0.0), sqrt(pivot), real(table, np.nan))
        out[i] = root
        for j in range(i + 1, n):
            out[j] = out[j] / root
    return 0


@kernel
def solve_triangular(table, ints, part, parts):
    """The x with ``t x = b``; arrays: out, t, b.

    ints: matrices, n, columns, whether t is upper, whether its diagonal is 1. Shares split the columns, ``matrices *
    columns`` of them.
    """
    matrices, n, columns, upper, unit = word(ints, 0), word(ints, 1), word(ints, 2), word(ints, 3), word(ints, 4)
    first, count = share(matrices * columns, part, parts)
    for m in range(matrices):
        start = max(first - m * columns, 0)
        mine = min(first + count - m * columns, columns) - start
        if mine <= 0:
            continue
        for done in range(n):
            i = n - 1 - done if upper else done
            place = (m * n + i) * columns + start
            out, b, t = (
                vector(table, 0, place, mine),
                vector(table, 2, place, mine),
                vector(table, 1, (m * n + i) * n, n),
            )
            for j in range(mine):
                out[j] = b[j]
            for before in range(done):
                k = n - 1 - before if upper else before
                _subtract(out, t[k], vector(table, 0, (m * n + k) * columns + start, mine), 0)
            if not unit:
                for j in range(mine):
                    out[j] = out[j] / t[i]
    return 0

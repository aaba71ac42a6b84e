"""The largest and the smallest of rows and columns, where they stand first, and what stands where.

NaN wins, and -0 < +0. So values are in a total order, and no order of comparisons can be seen in the bits.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector, vector_as
from ....numerics.simd.lanes import below, filled, half, inlined
from ....numerics.simd.minmax import larger, smaller
from ....numerics.simd.operations import bits_of, select
from ....numerics.simd.vectors import LANES, load_part, rolled

INT64 = np.int64(0)


@inlined
def extreme(winner, x, first):
    """The winner among ``first`` and the elements of a contiguous vector."""
    lanes = filled(first, LANES)
    for i in range(0, x.size, LANES):
        rolled()
        left = x.size - i
        lanes = select(below(lanes, left), winner(lanes, load_part(x, i, left)), lanes)
    eight = winner(half(lanes, 0), half(lanes, 1))
    four = winner(half(eight, 0), half(eight, 1))
    two = winner(half(four, 0), half(four, 1))
    return winner(half(two, 0), half(two, 1))


@inlined
def _first(x, value):
    """The first position of an element with the bits of ``value``, which is among them; all NaNs are one."""
    i = 0
    while bits_of(x[i]) != bits_of(value) and (x[i] == x[i] or value == value):
        i += 1
    return i


@inlined
def _extremes(winner, table, ints, part, parts):
    start, rows = share(word(ints, 0), part, parts)
    n, out = word(ints, 1), vector(table, 0, start, rows)
    for r in range(rows):
        x = vector(table, 1, (start + r) * n, n)
        out[r] = extreme(winner, x, x[0])
    return 0


@inlined
def _columns(winner, table, ints, part, parts):
    outer, n, inner = word(ints, 0), word(ints, 1), word(ints, 2)
    start, mine = share(inner, part, parts)
    for o in range(outer):
        out, first = vector(table, 0, o * inner + start, mine), vector(table, 1, o * n * inner + start, mine)
        for j in range(mine):
            out[j] = first[j]
        for r in range(1, n):
            x = vector(table, 1, (o * n + r) * inner + start, mine)
            for j in range(mine):
                out[j] = winner(out[j], x[j])
    return 0


@inlined
def _positions(winner, table, ints, part, parts):
    start, rows = share(word(ints, 0), part, parts)
    n, out = word(ints, 1), vector_as(table, INT64, 0, start, rows)
    for r in range(rows):
        x = vector(table, 1, (start + r) * n, n)
        out[r] = _first(x, extreme(winner, x, x[0]))
    return 0


@kernel
def max_rows(table, ints, part, parts):
    """``out[r]`` is the largest of ``x[r]``; ints: rows, n > 0."""
    return _extremes(larger, table, ints, part, parts)


@kernel
def min_rows(table, ints, part, parts):
    """``out[r]`` is the smallest of ``x[r]``; ints: rows, n > 0."""
    return _extremes(smaller, table, ints, part, parts)


@kernel
def max_columns(table, ints, part, parts):
    """``out[o, j]`` is the largest of ``x[o, :, j]``; ints: outer, n > 0, inner."""
    return _columns(larger, table, ints, part, parts)


@kernel
def min_columns(table, ints, part, parts):
    """``out[o, j]`` is the smallest of ``x[o, :, j]``; ints: outer, n > 0, inner."""
    return _columns(smaller, table, ints, part, parts)


@kernel
def argmax_rows(table, ints, part, parts):
    """``out[r]`` is where the largest of ``x[r]`` stands first; ints: rows, n > 0."""
    return _positions(larger, table, ints, part, parts)


@kernel
def argmin_rows(table, ints, part, parts):
    """``out[r]`` is where the smallest of ``x[r]`` stands first; ints: rows, n > 0."""
    return _positions(smaller, table, ints, part, parts)


@kernel
def pick(table, ints, part, parts):
    """``out[r] = x[r, indices[r]]``; arrays: out, x, indices; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n, out, indices = word(ints, 1), vector(table, 0, start, rows), vector_as(table, INT64, 2, start, rows)
    for r in range(rows):
        if not 0 <= indices[r] < n:
            return start + r + 1
        out[r] = vector(table, 1, (start + r) * n, n)[indices[r]]
    return 0


@kernel
def spread(table, ints, part, parts):
    """``out[r, indices[r]] = g[r]`` among zeros; arrays: out, g, indices; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n, g, indices = word(ints, 1), vector(table, 1, start, rows), vector_as(table, INT64, 2, start, rows)
    for r in range(rows):
        out = vector(table, 0, (start + r) * n, n)
        out[:] = real(table, 0.0)
        if not 0 <= indices[r] < n:
            return start + r + 1
        out[indices[r]] = g[r]
    return 0

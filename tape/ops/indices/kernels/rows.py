"""Kernels that move elements: gather rows by index, add rows by index, place a block into zeros.

An index counts from the end if it is negative, and one outside is refused; in `take_or_zero` and its adjoint
`scatter_add_inside` neither is so: there a row outside is zero and gets nothing.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np
from numba import njit

from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector, vector_as

INT64 = np.int64(0)


@njit(inline="always")
def position_of(index, n):
    """``index`` counted from the front, or -1 if it lies outside an axis of ``n``."""
    position = index + n if index < 0 else index
    return position if 0 <= position < n else -1


@njit(inline="always")
def _copy(out, source):
    """``out[:] = source``, without the text of numba's shape error, whose making calls log10."""
    for i in range(out.size):
        out[i] = source[i]


@njit(inline="always")
def _add(out, source):
    """``out += source``."""
    for i in range(out.size):
        out[i] += source[i]


@njit(inline="always")
def _take(table, ints, part, parts, strict):
    """Shares split the output, which is gone through in runs of rows of x; without ``strict`` a row may be none."""
    outer, n, inner, count = word(ints, 0), word(ints, 1), word(ints, 2), word(ints, 3)
    indices = vector_as(table, INT64, 2, 0, count)
    at, mine = share(outer * count * inner, part, parts)
    end, row = at + mine, at // max(inner, 1)
    column = at - row * inner
    while at < end:
        j, run = row % count, min(end - at, inner - column)
        position = position_of(indices[j], n) if strict else indices[j]
        out = vector(table, 0, at, run)
        if 0 <= position < n:
            _copy(out, vector(table, 1, (row // count * n + position) * inner + column, run))
        elif strict:
            return j + 1
        else:
            out[:] = real(table, 0.0)
        at, row, column = at + run, row + 1, 0
    return 0


@kernel
def take(table, ints, part, parts):
    """``out[o, j, :] = x[o, indices[j], :]``; arrays: out, x, indices; ints: outer, n, inner, count."""
    if word(ints, 0) * word(ints, 2) == 0:  # nothing to take: the indices are looked at all the same
        for j in range(word(ints, 3)):
            if position_of(vector_as(table, INT64, 2, j, 1)[0], word(ints, 1)) < 0:
                return j + 1
    return _take(table, ints, part, parts, True)


@kernel
def take_or_zero(table, ints, part, parts):
    """``out[o, j, :] = x[o, indices[j], :]``, +0 where there is no such row; arrays and ints of `take`."""
    return _take(table, ints, part, parts, False)


@njit
def _add_rows(table, ints, part, parts, values, indices, strict):
    """Add row j of array ``values`` to row ``indices[j]`` of the output, j ascending; shares split the rows.

    Without ``strict`` a row may be none, and nothing is added.
    """
    outer, n, inner, count = word(ints, 0), word(ints, 1), word(ints, 2), word(ints, 3)
    where = vector_as(table, INT64, indices, 0, count)
    start, mine = share(inner, part, parts)
    for j in range(count):
        position = position_of(where[j], n) if strict else where[j]
        if 0 <= position < n:
            for o in range(outer):
                out = vector(table, 0, (o * n + position) * inner + start, mine)
                _add(out, vector(table, values, (o * count + j) * inner + start, mine))
        elif strict:
            return j + 1
    return 0


@njit(inline="always")
def _scatter(table, ints, part, parts, strict):
    outer, n, inner = word(ints, 0), word(ints, 1), word(ints, 2)
    start, mine = share(inner, part, parts)
    for o in range(outer):
        for row in range(n):
            vector(table, 0, (o * n + row) * inner + start, mine)[:] = real(table, 0.0)
    return _add_rows(table, ints, part, parts, 1, 2, strict)


@kernel
def scatter_add(table, ints, part, parts):
    """Zeros with row j of ``values`` added at ``indices[j]``, j ascending; arrays: out, values, indices."""
    return _scatter(table, ints, part, parts, True)


@kernel
def scatter_add_inside(table, ints, part, parts):
    """`scatter_add` that leaves out the rows of ``values`` whose index lies outside 0 to n - 1."""
    return _scatter(table, ints, part, parts, False)


@kernel
def index_add(table, ints, part, parts):
    """``x`` with row j of ``values`` added at ``indices[j]``, j ascending; arrays: out, x, indices, values."""
    outer, n, inner = word(ints, 0), word(ints, 1), word(ints, 2)
    start, mine = share(inner, part, parts)
    for o in range(outer):
        for row in range(n):
            out = vector(table, 0, (o * n + row) * inner + start, mine)
            _copy(out, vector(table, 1, (o * n + row) * inner + start, mine))
    return _add_rows(table, ints, part, parts, 3, 2, True)

"""Kernels that take or add elements along an axis, each at an index of its own, and that find flat positions."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector, vector_as
from .rows import position_of

INT64 = np.int64(0)


@kernel
def take_along_axis(table, ints, part, parts):
    """``out[o, j, i] = x[o, indices[o, j, i], i]``; arrays: out, x, indices; ints: outer, n, inner, count."""
    outer, n, inner, count = word(ints, 0), word(ints, 1), word(ints, 2), word(ints, 3)
    start, mine = share(outer * count * inner, part, parts)
    out, indices = vector(table, 0, start, mine), vector_as(table, INT64, 2, start, mine)
    for e in range(mine):
        position = position_of(indices[e], n)
        if position < 0:
            return start + e + 1
        o, i = (start + e) // (count * inner), (start + e) % inner
        out[e] = vector(table, 1, (o * n + position) * inner + i, 1)[0]
    return 0


@kernel
def scatter_add_along_axis(table, ints, part, parts):
    """Zeros with ``values[o, j, i]`` added at ``[o, indices[o, j, i], i]``, j ascending; shares split the columns.

    Arrays: out, values, indices; ints: outer, n, inner, count. Of several faults the status is the least.
    """
    outer, n, inner, count = word(ints, 0), word(ints, 1), word(ints, 2), word(ints, 3)
    start, mine = share(outer * inner, part, parts)
    fault = 0
    for column in range(start, start + mine):
        o, i = column // inner, column % inner
        for r in range(n):
            vector(table, 0, (o * n + r) * inner + i, 1)[0] = real(table, 0.0)
        for j in range(count):
            e = (o * count + j) * inner + i
            position = position_of(vector_as(table, INT64, 2, e, 1)[0], n)
            if position >= 0:
                vector(table, 0, (o * n + position) * inner + i, 1)[0] += vector(table, 1, e, 1)[0]
            elif fault == 0 or e + 1 < fault:
                fault = e + 1
    return fault


@kernel
def flat_index(table, ints, part, parts):
    """``out = start + stride * position`` of each index on an axis of n; arrays: out, start, indices.

    ints: count, n, stride.
    """
    start, mine = share(word(ints, 0), part, parts)
    n, stride = word(ints, 1), word(ints, 2)
    out, first, indices = vector(table, 0, start, mine), vector(table, 1, start, mine), vector(table, 2, start, mine)
    for i in range(mine):
        position = position_of(indices[i], n)
        if position < 0:
            return start + i + 1
        out[i] = first[i] + stride * position
    return 0

"""Running products, linear recurrences and running extremes along an axis: chains from the first element to the last.

All take ``outer, n, inner``, and shares split the chains, ``outer * inner`` of them in row-major order.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ....numerics.engine.intrinsics import word
from ....numerics.engine.kernel import kernel, share, vector, vector_as
from ....numerics.simd.lanes import inlined
from ....numerics.simd.minmax import larger, smaller
from ....numerics.simd.operations import bits_of

INT64 = np.int64(0)


@inlined
def _chains(ints, part, parts):
    """``(n, inner, first, count)``: which chains are this share's."""
    first, count = share(word(ints, 0) * word(ints, 2), part, parts)
    return word(ints, 1), word(ints, 2), first, count


@kernel
def cumprod(table, ints, part, parts):
    """``out[o, r, j] = (x[o, 0, j] * x[o, 1, j]) * ... * x[o, r, j]``."""
    n, inner, first, count = _chains(ints, part, parts)
    for chain in range(first, first + count):
        place = chain // inner * n * inner + chain % inner
        size = (n - 1) * inner + 1 if n else 0
        out, x = vector(table, 0, place, size), vector(table, 1, place, size)
        for r in range(n):
            i = r * inner
            out[i] = out[i - inner] * x[i] if r else x[i]
    return 0


@kernel
def recurrence(table, ints, part, parts):
    """``out[o, 0, j] = b[o, 0, j]``, then ``out[o, r, j] = b[o, r, j] + a[o, r, j] * out[o, r - 1, j]``."""
    n, inner, first, count = _chains(ints, part, parts)
    for chain in range(first, first + count):
        place = chain // inner * n * inner + chain % inner
        size = (n - 1) * inner + 1 if n else 0
        out, a, b = vector(table, 0, place, size), vector(table, 1, place, size), vector(table, 2, place, size)
        for r in range(n):
            i = r * inner
            out[i] = b[i] + a[i] * out[i - inner] if r else b[i]
    return 0


@inlined
def _last_place(winner, x, out, n, start, step, inner):
    """Where the winner of the elements up to each one stands last; from one to the next it is ``step``."""
    best = 0
    for r in range(n):
        i = r * inner
        if x[i] != x[i] or bits_of(winner(x[best * inner], x[i])) == bits_of(x[i]):
            best = r
        out[i] = start + best * step


@kernel
def running_place(table, ints, part, parts):
    """Where the largest of ``x[o, :r + 1, j]`` stands last, or the smallest if ints[3] is 0.

    Counted along the axis, or in the whole array if ints[4] is not 0.
    """
    n, inner, first, count = _chains(ints, part, parts)
    for chain in range(first, first + count):
        place = chain // inner * n * inner + chain % inner
        size = (n - 1) * inner + 1 if n else 0
        out, x = vector_as(table, INT64, 0, place, size), vector(table, 1, place, size)
        start, step = (place, inner) if word(ints, 4) else (0, 1)
        if word(ints, 3):
            _last_place(larger, x, out, n, start, step, inner)
        else:
            _last_place(smaller, x, out, n, start, step, inner)
    return 0

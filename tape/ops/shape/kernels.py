"""Kernels that put arrays side by side along an axis: one after another, or between borders."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ...numerics.engine.intrinsics import real, word
from ...numerics.engine.kernel import kernel, share, vector
from ...numerics.simd.operations import float_of


@njit(inline="always")
def _copy_columns(table, k, outer, n, place, pitch, part, parts):
    """Array ``k``, of ``outer`` rows of ``n``, into the columns from ``place`` on; shares split the columns."""
    start, mine = share(n, part, parts)
    for o in range(outer):
        out, x = vector(table, 0, o * pitch + place + start, mine), vector(table, k, o * n + start, mine)
        for i in range(mine):
            out[i] = x[i]


@njit(inline="always")
def _fill_columns(table, value, outer, n, place, pitch, part, parts):
    start, mine = share(n, part, parts)
    for o in range(outer):
        vector(table, 0, o * pitch + place + start, mine)[:] = value


@njit(inline="always")
def _pad(table, ints, part, parts, value):
    outer, before, n, after = word(ints, 0), word(ints, 1), word(ints, 2), word(ints, 3)
    pitch = before + n + after
    _fill_columns(table, value, outer, before, 0, pitch, part, parts)
    _copy_columns(table, 1, outer, n, before, pitch, part, parts)
    _fill_columns(table, value, outer, after, before + n, pitch, part, parts)
    return 0


@kernel
def append(table, ints, part, parts):
    """``out[o] = a[o], b[o]``; ints: outer, elements of a row of a, of b."""
    outer, m, n = word(ints, 0), word(ints, 1), word(ints, 2)
    _copy_columns(table, 1, outer, m, 0, m + n, part, parts)
    _copy_columns(table, 2, outer, n, m, m + n, part, parts)
    return 0


@kernel
def pad(table, ints, part, parts):
    """``out[o] = value..., x[o], value...``; ints: outer, elements before, of a row of x, after, the float value."""
    return _pad(table, ints, part, parts, real(table, float_of(word(ints, 4))))


@kernel
def pad_whole(table, ints, part, parts):
    """`pad` for integers and bools: the value is a whole number."""
    return _pad(table, ints, part, parts, real(table, word(ints, 4)))


@kernel
def repeat(table, ints, part, parts):
    """``out[o, j] = x[o, positions[j]]``, rows of ``inner``; ints: outer, count, n, inner, the positions."""
    count, n, inner = word(ints, 1), word(ints, 2), word(ints, 3)
    start, mine = share(word(ints, 0) * count, part, parts)
    for row in range(start, start + mine):
        position = row // count * n + word(ints, 4 + row % count)
        out, x = vector(table, 0, row * inner, inner), vector(table, 1, position * inner, inner)
        for i in range(inner):
            out[i] = x[i]
    return 0


@kernel
def place(table, ints, part, parts):
    """Zeros with a block written at an offset with strides: the adjoint of slicing.

    ints: size of the output, offset, rank, the block's sizes, the strides in the output (in elements).
    """
    _, mine = share(1, part, parts)
    if mine == 0:
        return 0
    total, offset, rank = word(ints, 0), word(ints, 1), word(ints, 2)
    out = vector(table, 0, 0, total)
    out[:] = real(table, 0.0)
    rows = 1
    for axis in range(rank - 1):
        rows *= word(ints, 3 + axis)
    n, stride = (word(ints, 2 + rank), word(ints, 2 + 2 * rank)) if rank else (1, 0)
    for row in range(rows):
        left, position, block = row, offset, vector(table, 1, row * n, n)
        for axis in range(rank - 2, -1, -1):
            length = word(ints, 3 + axis)
            position += left % length * word(ints, 3 + rank + axis)
            left //= length
        for i in range(n):
            out[position + i * stride] = block[i]
    return 0

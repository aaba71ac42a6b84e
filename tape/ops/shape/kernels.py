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
def place_columns(table, ints, part, parts):
    """Zeros with a block of columns: the adjoint of slicing one axis; shares split the output.

    ints: rows, elements of a row of the output, before the block in it, of a row of the block.
    """
    pitch, first, run = word(ints, 1), word(ints, 2), word(ints, 3)
    at, mine = share(word(ints, 0) * pitch, part, parts)
    end = at + mine
    while at < end:
        row = at // pitch
        column = at - row * pitch
        inside = column - first
        if inside < 0 or inside >= run:
            n = min(end - at, (first if inside < 0 else pitch) - column)
            vector(table, 0, at, n)[:] = real(table, 0.0)
        else:
            n = min(end - at, run - inside)
            out, x = vector(table, 0, at, n), vector(table, 1, row * run + inside, n)
            for i in range(n):
                out[i] = x[i]
        at += n
    return 0


@kernel
def join_columns(table, ints, part, parts):
    """``out[o] = x0[o] + 0, x1[o] + 0, ...``: the sum of blocks of columns side by side, each placed into zeros.

    ints: rows, elements of a row of the output, how many blocks, of a row of each; shares split the output.
    """
    pitch, zero = word(ints, 1), real(table, 0.0)
    at, mine = share(word(ints, 0) * pitch, part, parts)
    end = at + mine
    row = at // pitch
    k, inside = 0, at - row * pitch
    while at < end:
        while inside >= word(ints, 3 + k):
            inside -= word(ints, 3 + k)
            k += 1
        run = word(ints, 3 + k)
        n = min(end - at, run - inside)
        out, x = vector(table, 0, at, n), vector(table, 1 + k, row * run + inside, n)
        for i in range(n):
            out[i] = x[i] + zero
        at += n
        inside += n
        if at == (row + 1) * pitch:
            row, k, inside = row + 1, 0, 0
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

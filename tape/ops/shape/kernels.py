"""Kernels that put arrays side by side along an axis: one after another, or between borders."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ...numerics.engine.code_for import GPU
from ...numerics.engine.intrinsics import real, word
from ...numerics.engine.kernel import kernel, share, vector
from ...numerics.simd.operations import float_of


@njit(inline="always")
def _copy(out, x):
    for i in range(out.size):
        out[i] = x[i]


@njit(inline="always")
def _pad(table, ints, part, parts, value):
    """Shares split the output, which is gone through in runs of borders and of rows of x."""
    before, n, after = word(ints, 1), word(ints, 2), word(ints, 3)
    pitch = before + n + after
    at, mine = share(word(ints, 0) * pitch, part, parts)
    end, row = at + mine, at // max(pitch, 1)
    column = at - row * pitch
    while at < end:
        inside = column - before
        if 0 <= inside < n:
            run = min(end - at, n - inside)
            _copy(vector(table, 0, at, run), vector(table, 1, row * n + inside, run))
        else:
            run = min(end - at, (before if inside < 0 else pitch) - column)
            vector(table, 0, at, run)[:] = value
        at, column = at + run, column + run
        if column == pitch:
            row, column = row + 1, 0
    return 0


@kernel
def append(table, ints, part, parts):
    """``out[o] = a[o], b[o]``; ints: outer, elements of a row of a, of b; shares split the output."""
    m, n = word(ints, 1), word(ints, 2)
    at, mine = share(word(ints, 0) * (m + n), part, parts)
    end, row = at + mine, at // max(m + n, 1)
    column = at - row * (m + n)
    while at < end:
        if column < m:
            run = min(end - at, m - column)
            _copy(vector(table, 0, at, run), vector(table, 1, row * m + column, run))
        else:
            run = min(end - at, m + n - column)
            _copy(vector(table, 0, at, run), vector(table, 2, row * n + column - m, run))
        at, column = at + run, column + run
        if column == m + n:
            row, column = row + 1, 0
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
    """``out[o, j] = x[o, positions[j]]``, rows of ``inner``; ints: outer, count, n, inner, the positions.

    Shares split the output.
    """
    count, n, inner = word(ints, 1), word(ints, 2), word(ints, 3)
    at, mine = share(word(ints, 0) * count * inner, part, parts)
    end, row = at + mine, at // max(inner, 1)
    column = at - row * inner
    while at < end:
        position, run = row // count * n + word(ints, 4 + row % count), min(end - at, inner - column)
        _copy(vector(table, 0, at, run), vector(table, 1, position * inner + column, run))
        at, row, column = at + run, row + 1, 0
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
            _copy(vector(table, 0, at, n), vector(table, 1, row * run + inside, n))
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


@njit(inline="always")
def _place_of(ints, element):
    """Where an element of the block lies in the output of `place`."""
    rank, position = word(ints, 2), word(ints, 1)
    for axis in range(rank - 1, -1, -1):
        length = word(ints, 3 + axis)
        position += element % length * word(ints, 3 + rank + axis)
        element //= length
    return position


@njit(inline="always")
def _place_each(table, ints, part, parts):
    """The elements of a share, each put where it lies: the rest is zero already."""
    size = 1
    for axis in range(word(ints, 2)):
        size *= word(ints, 3 + axis)
    start, mine = share(size, part, parts)
    out, block = vector(table, 0, 0, word(ints, 0)), vector(table, 1, 0, size)
    for element in range(start, start + mine):
        out[_place_of(ints, element)] = block[element]
    return 0


@kernel
def place(table, ints, part, parts):
    """Zeros with a block written at an offset with strides: the adjoint of slicing.

    ints: size of the output, offset, rank, the block's sizes, the strides in the output (in elements).
    """
    if GPU:  # where a thread has an element, and the output is cleared before
        return _place_each(table, ints, part, parts)
    _, mine = share(1, part, parts)
    if mine == 0:
        return 0
    rank = word(ints, 2)
    out = vector(table, 0, 0, word(ints, 0))
    out[:] = real(table, 0.0)
    rows = 1
    for axis in range(rank - 1):
        rows *= word(ints, 3 + axis)
    n, stride = (word(ints, 2 + rank), word(ints, 2 + 2 * rank)) if rank else (1, 0)
    for row in range(rows if n else 0):
        position, block = _place_of(ints, row * n), vector(table, 1, row * n, n)
        for i in range(n):
            out[position + i * stride] = block[i]
    return 0


place.cleared = True

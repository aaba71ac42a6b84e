"""Weighted sums of cells, of those that each output reads or of what each cell was read for, as one kernel.

Lines of cells are spread out for a block of columns: the first cell of each column side by side, then the second ones,
and so on. So vectors of columns are loaded as they are, whatever their windows. Lines that the next output reads as
well are kept. The words are made by `weighted.words`.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportPrivateImportUsage=false
import numpy as np
from numba import carray, njit

from ....numerics.engine.code_for import GPU
from ....numerics.engine.intrinsics import real, retyped, stack, stack_words, table_at, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.simd.codegen import CACHE_LINE
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import constant, float_of, fma, select
from ....numerics.simd.vectors import few, load_few, load_lane, rolled, store, store_few
from .weighted import (
    BLOCK,
    CELLS,
    COLUMN_CELLS,
    COLUMN_WEIGHTS,
    COLUMNS,
    LAYER_WINDOWS,
    LAYERS,
    LINES,
    LINES_KEPT,
    MOST_KEPT,
    ROOM,
    ROW_WINDOWS,
    ROWS,
    ROWS_KEPT,
    SOURCE_COLUMNS,
    SOURCE_LAYERS,
    SOURCE_ROWS,
)

INT64, WORD = np.int64(0), 8
AREA = ROOM + CACHE_LINE // WORD
"""Words for the longest elements."""


@njit(inline="always")  # numba, not LLVM, makes it part of its caller: the area lives as long as that
def _room(table):
    """Room that starts a cache line, so that no vector in it lies in two."""
    return carray(table_at(table, (stack_words(AREA) + CACHE_LINE - 1) & -CACHE_LINE), ROOM)


@inlined
def _plus(total, vertical, horizontal, x):
    """A sum with one more cell, if it is one."""
    return select(horizontal == horizontal, fma(vertical * horizontal, x, total), total)


@inlined
def _weigh(table, ints, first, columns, room):
    """Bring the weights of a block to the start of the room."""
    for j in range(word(ints, CELLS)):
        weights = word(ints, COLUMN_WEIGHTS) + j * word(ints, COLUMNS) + first
        for c in range(columns):
            rolled()
            store(room, j * word(ints, BLOCK) + c, real(table, float_of(word(ints, weights + c))))


@inlined
def _bring(ints, first, columns, room, place, x):
    """Bring what a block reads of a line to a place in the room, spread out."""
    width, pitch, cells = word(ints, BLOCK), word(ints, COLUMNS), word(ints, COLUMN_CELLS) + first
    for j in range(word(ints, CELLS)):
        for c in range(columns):
            store(room, place + j * width + c, load_lane(x, word(ints, cells + j * pitch + c)))


@inlined
def _spread(table, ints, first, columns, room, kept, layer, row):
    """Where a line of the source lies spread out in the room, brought there unless it is kept."""
    line, high = layer * word(ints, SOURCE_ROWS) + row, word(ints, ROWS_KEPT)
    slot = (layer * high + (row & (high - 1))) & (word(ints, LINES_KEPT) - 1)
    place = (1 + slot) * word(ints, CELLS) * word(ints, BLOCK)
    if kept[slot] != line:
        kept[slot] = line
        size = word(ints, SOURCE_COLUMNS)
        _bring(ints, first, columns, room, place, vector(table, 1, line * size, size))
    return place


@inlined
def _add(ints, out, is_first, vertical, room, place):
    """Add a line that is spread out, to nothing if it is the first one."""
    width, cells = word(ints, BLOCK), word(ints, CELLS)
    for c in range(0, out.size, few(out)):
        rolled()
        left = out.size - c
        total = load_few(out, c, left)
        if is_first:
            total = constant(total, 0.0)
        for j in range(cells):
            rolled()
            i = j * width + c
            total = _plus(total, vertical, load_few(room, i, left), load_few(room, place + i, left))
        store_few(out, c, left, total)


@inlined
def _sum_line(table, ints, first, columns, room, kept, layer, row):
    """The sums of a block in one row of a layer; layers are counted through all volumes."""
    volume, line = layer // word(ints, LAYERS), layer * word(ints, ROWS) + row
    out = vector(table, 0, line * word(ints, COLUMNS) + first, columns)
    down = word(ints, LAYER_WINDOWS) + 2 * (layer - volume * word(ints, LAYERS))
    across = word(ints, ROW_WINDOWS) + 2 * row
    is_first = True
    for z in range(word(ints, down), word(ints, down) + 2 * word(ints, down + 1), 2):
        source, deep = volume * word(ints, SOURCE_LAYERS) + word(ints, z), real(table, float_of(word(ints, z + 1)))
        for v in range(word(ints, across), word(ints, across) + 2 * word(ints, across + 1), 2):
            vertical = deep * real(table, float_of(word(ints, v + 1)))
            place = _spread(table, ints, first, columns, room, kept, source, word(ints, v))
            _add(ints, out, is_first, vertical, room, place)
            is_first = False
    if is_first:
        out[:] = real(table, 0.0)


@njit(inline="always")
def _sum_blocks(table, ints, part, parts):
    """The sums of a share of the lines, block by block."""
    start, count = share(word(ints, LINES), part, parts)
    room, kept, rows = _room(table), stack(retyped(table, INT64), MOST_KEPT), word(ints, ROWS)
    for first in range(0, word(ints, COLUMNS), word(ints, BLOCK)):
        columns = min(word(ints, BLOCK), word(ints, COLUMNS) - first)
        _weigh(table, ints, first, columns, room)
        kept[:] = -1
        for layer in range(start // rows, (start + count + rows - 1) // rows):
            begin = layer * rows
            for row in range(max(start - begin, 0), min(start + count - begin, rows)):
                _sum_line(table, ints, first, columns, room, kept, layer, row)
    return 0


@inlined
def _weighted_sum(table, ints, x, down, across, column):
    total, cells, weights = real(table, 0.0), word(ints, COLUMN_CELLS) + column, word(ints, COLUMN_WEIGHTS) + column
    for z in range(word(ints, down), word(ints, down) + 2 * word(ints, down + 1), 2):
        layer, deep = word(ints, z) * word(ints, SOURCE_ROWS), real(table, float_of(word(ints, z + 1)))
        for v in range(word(ints, across), word(ints, across) + 2 * word(ints, across + 1), 2):
            begin = (layer + word(ints, v)) * word(ints, SOURCE_COLUMNS)
            vertical = deep * real(table, float_of(word(ints, v + 1)))
            for j in range(word(ints, CELLS)):
                horizontal = real(table, float_of(word(ints, weights + j * word(ints, COLUMNS))))
                total = _plus(total, vertical, horizontal, x[begin + word(ints, cells + j * word(ints, COLUMNS))])
    return total


@kernel
def weighted_sums(table, ints, part, parts):
    """``out[o] = fma((Z·V)·H, x, sum)`` over the cells of window o, from +0; Z, V, H are the weights along the axes.

    Shares split lines, on a GPU or where no block of columns fits the room outputs.
    """
    if not GPU and word(ints, BLOCK):
        return _sum_blocks(table, ints, part, parts)
    layers, rows, columns = word(ints, LAYERS), word(ints, ROWS), word(ints, COLUMNS)
    start, count = share(word(ints, LINES) * columns, part, parts)
    out = vector(table, 0, start, count)
    size = word(ints, SOURCE_LAYERS) * word(ints, SOURCE_ROWS) * word(ints, SOURCE_COLUMNS)
    for i in range(count):
        line, column = (start + i) // columns, (start + i) % columns
        x = vector(table, 1, line // (layers * rows) * size, size)
        down, across = (
            word(ints, LAYER_WINDOWS) + 2 * (line // rows % layers),
            word(ints, ROW_WINDOWS) + 2 * (line % rows),
        )
        out[i] = _weighted_sum(table, ints, x, down, across, column)
    return 0

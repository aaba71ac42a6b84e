"""Weighted sums in lanes: lines of cells are spread out for a block of columns, then added with their weights.

Spread out, a line has the first cell of each column side by side, then the second ones, and so on. So vectors of
columns are loaded as they are, whatever their windows. Lines that the next output reads as well are kept.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np
from numba import carray, njit

from ....numerics.engine.intrinsics import real, retyped, stack, stack_words, table_at, word
from ....numerics.engine.kernel import share, vector
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
def plus(total, vertical, horizontal, x):
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
            total = plus(total, vertical, load_few(room, i, left), load_few(room, place + i, left))
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
def sum_blocks(table, ints, part, parts):
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

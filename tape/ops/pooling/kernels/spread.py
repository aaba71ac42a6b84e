"""Weighted sums in lanes: the cells that the columns of a line read are brought side by side, then lines are added.

Lines of the source are spread out block by block: for each column of a block its first cell, then for each its second
one, and so on. So whatever the windows are, vectors of neighbouring columns are loaded as they are, and as the next
lines of the output read mostly the same lines of the source, these are spread once and kept on the stack.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np
from numba import carray, njit

from ....numerics.engine.intrinsics import real, retyped, stack, stack_words, table_at, word
from ....numerics.engine.kernel import share, vector
from ....numerics.simd.codegen import CACHE_LINE
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import float_of, fma, select
from ....numerics.simd.vectors import LANES, bundle, few, load_bundle, load_few, load_lane, rolled, store, store_few

# Positions of the words: lines of the outputs of all volumes; layers, rows and columns of the output of one and of its
# source; where the first layer's windows stand, and the first row's; the most cells of a window of the columns; where
# these cells stand, the first ones of all columns, then the second ones, and so on, and their weights, NaN where there
# is no cell; columns of a block, 0 if no lanes are used; how many rows of a layer are kept, and how many lines in all.
LINES, LAYERS, ROWS, COLUMNS, SOURCE_LAYERS, SOURCE_ROWS, SOURCE_COLUMNS = range(7)
LAYER_WINDOWS, ROW_WINDOWS, CELLS, COLUMN_CELLS, COLUMN_WEIGHTS, BLOCK, ROWS_KEPT, KEPT, HEAD = range(7, 16)

INT64, WORD = np.int64(0), 8
ROOM, MOST_KEPT = 8192, 64
"""Elements on the stack for the weights of a block and the lines that are kept, and how many these are at most."""
AREA = ROOM + CACHE_LINE // WORD


def blocks(cells: int, rows: int, layers: int) -> tuple[int, int, int]:
    """The last three words, for windows of the columns, rows and layers of so many cells.

    >>> blocks(2, 2, 1), blocks(16, 32, 1), blocks(1000, 1, 1)
    ((1360, 2, 2), (256, 1, 1), (0, 1, 1))
    """
    high = 1 << (rows - 1).bit_length()
    kept = high << (layers - 1).bit_length()
    width = ROOM // (cells * (kept + 1)) // LANES * LANES if kept <= MOST_KEPT else 0
    return (width, high, kept) if width else (ROOM // (2 * cells) // LANES * LANES, 1, 1)


@njit(inline="always")  # numba, not LLVM, makes it part of its caller: the area lives as long as that
def _room(table):
    """Room that starts a cache line, so that vectors in it are loaded at once."""
    area = stack_words(AREA)
    return carray(table_at(table, (area + CACHE_LINE - 1) & -CACHE_LINE), ROOM)


@inlined
def _spread(ints, first, x, room, place, width, columns):
    """Bring the cells side by side that the columns of a block read of a line of the source."""
    for j in range(word(ints, CELLS)):
        cells = word(ints, COLUMN_CELLS) + j * word(ints, COLUMNS) + first
        for c in range(columns):
            store(room, place + j * width + c, load_lane(x, word(ints, cells + c)))


@inlined
def _weigh(table, ints, first, room, width, columns):
    """Bring the weights of a block into the element type, at the start of the room."""
    for j in range(word(ints, CELLS)):
        weights = word(ints, COLUMN_WEIGHTS) + j * word(ints, COLUMNS) + first
        for c in range(columns):
            rolled()
            store(room, j * width + c, real(table, float_of(word(ints, weights + c))))


@inlined
def more(total, vertical, horizontal, x):
    """The sum with one more cell, if there is one."""
    return select(horizontal == horizontal, fma(vertical * horizontal, x, total), total)


@inlined
def _add_line(out, vertical, room, place, width, cells):
    for c in range(0, out.size, few(out)):
        rolled()
        left = out.size - c
        total = load_few(out, c, left)
        for j in range(0, cells * width, width):
            rolled()
            total = more(total, vertical, load_few(room, j + c, left), load_few(room, place + j + c, left))
        store_few(out, c, left, total)


@inlined
def _fill(table, ints, first, columns, slab, i, room, kept):
    """The columns of a block of one line of the output."""
    rows, layers, high = word(ints, ROWS), word(ints, LAYERS), word(ints, ROWS_KEPT)
    width, cells = word(ints, BLOCK), word(ints, CELLS)
    out = vector(table, 0, (slab * rows + i) * word(ints, COLUMNS) + first, columns)
    out[:] = real(table, 0.0)
    down, across = word(ints, LAYER_WINDOWS) + 2 * (slab % layers), word(ints, ROW_WINDOWS) + 2 * i
    for z in range(word(ints, down), word(ints, down) + 2 * word(ints, down + 1), 2):
        layer, deep = word(ints, z), real(table, float_of(word(ints, z + 1)))
        begin = (slab // layers * word(ints, SOURCE_LAYERS) + layer) * word(ints, SOURCE_ROWS)
        for v in range(word(ints, across), word(ints, across) + 2 * word(ints, across + 1), 2):
            row, vertical = word(ints, v), deep * real(table, float_of(word(ints, v + 1)))
            slot = (layer * high + (row & (high - 1))) & (word(ints, KEPT) - 1)
            place = (1 + slot) * cells * width
            if kept[slot] != begin + row:
                kept[slot] = begin + row
                x = vector(table, 1, (begin + row) * word(ints, SOURCE_COLUMNS), word(ints, SOURCE_COLUMNS))
                _spread(ints, first, x, room, place, width, columns)
            _add_line(out, vertical, room, place, width, cells)


@njit(inline="always")
def visit_blocks(table, ints, part, parts):
    start, count = share(word(ints, LINES), part, parts)
    room, kept = _room(table), stack(retyped(table, INT64), MOST_KEPT)
    width, rows = word(ints, BLOCK), word(ints, ROWS)
    for first in range(0, word(ints, COLUMNS), width):
        columns = min(width, word(ints, COLUMNS) - first)
        _weigh(table, ints, first, room, width, columns)
        kept[:] = -1
        for slab in range(start // rows, (start + count + rows - 1) // rows):
            for i in range(max(start - slab * rows, 0), min(start + count - slab * rows, rows)):
                _fill(table, ints, first, columns, slab, i, room, kept)
    return 0

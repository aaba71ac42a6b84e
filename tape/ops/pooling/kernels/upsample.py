"""Weighted sums of the cells that each output reads along up to three axes, and of what each cell got, as a kernel.

The words are made by `weighted.words`.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.code_for import GPU
from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import float_of
from .spread import plus, sum_blocks
from .weighted import (
    BLOCK,
    CELLS,
    COLUMN_CELLS,
    COLUMN_WEIGHTS,
    COLUMNS,
    LAYER_WINDOWS,
    LAYERS,
    LINES,
    ROW_WINDOWS,
    ROWS,
    SOURCE_COLUMNS,
    SOURCE_LAYERS,
    SOURCE_ROWS,
)


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
                total = plus(total, vertical, horizontal, x[begin + word(ints, cells + j * word(ints, COLUMNS))])
    return total


@kernel
def weighted_sums(table, ints, part, parts):
    """``out[o] = fma((Z·V)·H, x, sum)`` over the cells of window o, from +0; Z, V, H are the weights along the axes.

    Shares split lines, on a GPU or where no block of columns fits the room outputs.
    """
    if not GPU and word(ints, BLOCK):
        return sum_blocks(table, ints, part, parts)
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

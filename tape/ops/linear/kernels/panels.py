"""Panels of a matrix: what the tiles of several products read in turn is copied for all of them at once."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import entry, word
from ....numerics.engine.kernel import kernel, share
from ....numerics.simd.codegen import CACHE_LINE
from ....numerics.simd.pack import PANEL_VECTORS, itemsize, pack_panel, vector_size
from .product import rounded, spaced

# Positions of the words: sizes of the matrix, and its strides in bytes.
DEPTH, COLUMNS, ROW, COLUMN = range(4)


def panel_elements(depth: int, columns: int, itemsize: int) -> int:
    """Elements that all panels of a matrix of ``depth`` rows have at most, on whatever machine they are made.

    >>> panel_elements(20, 40, itemsize=4)
    2048
    """
    most = PANEL_VECTORS * CACHE_LINE // itemsize
    return rounded(depth) * -(-columns // most) * most


@kernel
def pack_panels(table, ints, part, parts):
    """The panels of a matrix one behind the other, each with all rows; shares are panels."""
    depth, columns, row, column = word(ints, DEPTH), word(ints, COLUMNS), word(ints, ROW), word(ints, COLUMN)
    pitch = PANEL_VECTORS * vector_size()
    width = pitch // itemsize(table)
    first, count = share((columns + width - 1) // width, part, parts)
    for panel in range(first, first + count):
        source, target = entry(table, 1) + panel * width * column, entry(table, 0) + panel * spaced(depth) * pitch
        pack_panel(table, source, row, column, depth, min(columns - panel * width, width), target)
    return 0

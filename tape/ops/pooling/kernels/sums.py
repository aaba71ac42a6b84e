"""Kernels of pools: sums and maxima of windows, which cells are the largest, and nearest neighbours.

The words of all of them are made by `pooling_windows.words`.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ....numerics.engine.code_for import GPU
from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, vector
from ....numerics.simd.lanes import inlined
from ....numerics.simd.minmax import larger
from ....numerics.simd.vectors import store_part
from .beside import bring_back_windows, bring_source, visit_planes
from .fold import LINES_SPANNED, fold, line_of, plane_of, room, visit_cells, visit_columns, visit_share
from .quarters import load_quarters
from .windows import QUARTERED, WINDOWS


@inlined
def _plus(total, x, _, __, ___):
    return total + x


@inlined
def _larger(most, x, _, __, ___):
    return larger(most, x)


@inlined
def _cell(_, x, __, ___, ____):
    return x


@inlined
def _fold_line(function, start, table, ints, line, number):
    """A fold of one source."""
    out, x = line_of(table, ints, 0, number), plane_of(table, ints, 1, line)
    visit_columns(fold, function, start, ints, line, out, start, x, start, start)


@inlined
def _sums(table, ints, line, number):
    _fold_line(_plus, real(table, 0.0), table, ints, line, number)


@inlined
def _maxima(table, ints, line, number):
    _fold_line(_larger, real(table, -np.inf), table, ints, line, number)


@inlined
def _cell_maxima(table, kind, i, left):
    x, out = vector(table, 1, 4 * i, 4 * left), vector(table, 0, i, left)
    a, b, c, d = load_quarters(x, 0, kind, left)
    store_part(out, 0, left, larger(larger(larger(a, b), c), d))


@inlined
def _cells(table, ints, line, number):
    _fold_line(_cell, real(table, 0.0), table, ints, line, number)


@inlined
def _shares(table, ints, line, number):
    out, g = line_of(table, ints, 0, number), line_of(table, ints, 1, number)
    for column in range(out.size):
        cells = line[LINES_SPANNED] * word(ints, word(ints, WINDOWS) + 2 * column + 1)
        out[column] = g[column] / real(table, cells)


@kernel
def window_sums(table, ints, part, parts):
    """``out[o]`` is +0 plus each cell of window o."""
    return visit_planes(_sums, bring_source, bring_back_windows, 1, table, ints, part, parts)


@kernel
def window_maxima(table, ints, part, parts):
    """``out[o]`` is the largest cell of window o; NaN wins, -0 < +0."""
    if not GPU and word(ints, QUARTERED):
        return visit_cells(_cell_maxima, table, ints, part, parts)
    return visit_planes(_maxima, bring_source, bring_back_windows, 1, table, ints, part, parts)


@kernel
def window_cells(table, ints, part, parts):
    """``out[o]`` is the one cell of window o."""
    return visit_share(_cells, table, ints, part, parts, room(table))


@kernel
def window_shares(table, ints, part, parts):
    """``out[o] = g[o] / n`` with n the number of cells of window o."""
    return visit_share(_shares, table, ints, part, parts, room(table))

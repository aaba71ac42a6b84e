"""Kernels of maximum pools' gradients: where the largest cell of each window stands, and what passes to and from there.

The words of all of them are made by `pooling_windows.words`. A position is that of a cell in its plane.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ....numerics.engine.code_for import GPU
from ....numerics.engine.intrinsics import real, retyped, word
from ....numerics.engine.kernel import kernel, vector, vector_as
from ....numerics.simd.lanes import inlined
from ....numerics.simd.minmax import larger
from ....numerics.simd.operations import constant, select
from ....numerics.simd.vectors import load_part, rolled
from .beside import bring, bring_back, bring_back_windows, bring_source, visit_planes
from .fold import (
    INT64,
    LINES_SPANNED,
    OWN_COLUMN,
    PLANE_NUMBER,
    fold_cells,
    line_of,
    line_offset,
    plane_of,
    room,
    visit_cells,
    visit_columns,
    visit_share,
)
from .gather import same_bits
from .quarters import load_quarters, store_quarters
from .windows import ADVANCE, COLUMNS, PLANE, QUARTERED, SHIFT, SOURCE_PLANE, STEP

FLOAT64 = np.float64(0)
"""As numbers of this type, which are as long, positions are brought: moves keep all bits."""


@inlined
def _one_nan(cells):
    """Numbers in which all NaNs are one."""
    return select(cells != cells, constant(cells, np.nan), cells)


@inlined
def _positions(load, ints, place, spacing, left):
    """Which cells of a plane those at a place are; the lanes of planes side by side have the same."""
    shift = word(ints, SHIFT)
    return load(0, place >> shift, spacing >> shift, left)


@inlined
def _first_largest(load, winner, most, where, x):
    """The position of the first of the largest cells of each window."""
    ints, line, window, _, _, left = where
    step, advance = word(ints, STEP), word(ints, ADVANCE)
    first, count = word(ints, window), word(ints, window + 1)
    found = _positions(load, ints, line_offset(ints, line, 0) + first, advance, left)
    for k in range(line[LINES_SPANNED]):
        place = line_offset(ints, line, k) + first
        for _ in range(count):
            rolled()
            cells = load(x, place, advance, left)
            more = winner(most, _one_nan(cells))
            found = select(same_bits(most, more), found, _positions(load, ints, place, advance, left))
            most = more
            place += step
    return found


@inlined
def _store_position(load, store, winner, most, where, out, x):
    _, _, _, place, period, left = where
    store(out, place, period, left, _first_largest(load, winner, most, where, x))


@inlined
def _give(load, store, winner, most, where, out, g, x):
    """``g`` to the first of the largest cells of windows that share none, +0 to the others."""
    ints, line, window, own, period, left = where
    found = _first_largest(load, winner, most, where, x)
    step, advance = word(ints, STEP), word(ints, ADVANCE)
    given = load(g, own, period, left)
    zero = constant(given, 0.0)
    given = zero + given
    for k in range(line[LINES_SPANNED]):
        place = line_offset(ints, line, k) + word(ints, window)
        for _ in range(word(ints, window + 1)):
            rolled()
            largest = same_bits(found, _positions(load, ints, place, advance, left))
            store(out, place, advance, left, select(largest, given, zero))
            place += step


@inlined
def _plus_if_largest(total, g, position, here, _):
    return total + select(same_bits(position, here), g, constant(g, 0.0))


@inlined
def _add(load, store, function, start, where, out, own, g, positions, number):
    """`fold` for the cells from position ``own`` on."""
    ints, _, _, place, period, left = where
    here = _positions(load, ints, own + place, period, left)
    store(out, place, period, left, fold_cells(load, function, start, here, where, g, positions, number))


@inlined
def _find(table, ints, line, number):
    columns = word(ints, COLUMNS)
    out, x = vector_as(table, INT64, 0, number * columns, columns), plane_of(table, ints, 1, line)
    visit_columns(_store_position, larger, real(table, -np.inf), ints, line, out, x)


@inlined
def _add_to_largest(table, ints, line, number):
    size, zero = word(ints, SOURCE_PLANE), real(table, 0.0)
    g, positions = plane_of(table, ints, 1, line), vector_as(table, INT64, 2, line[PLANE_NUMBER] * size, size)
    out, own = line_of(table, ints, 0, number), number * word(ints, COLUMNS) - line[PLANE_NUMBER] * word(ints, PLANE)
    visit_columns(_add, _plus_if_largest, zero, ints, line, out, own, g, positions, zero)


@inlined
def _give_to_largest(table, ints, line, number):
    out, x = plane_of(table, ints, 0, line), plane_of(table, ints, 2, line)
    # The first line of a plane clears it; a GPU has it cleared before, as its threads have no order.
    if not GPU and number * word(ints, COLUMNS) == line[PLANE_NUMBER] * word(ints, PLANE):
        out[:] = real(table, 0.0)
    g = line_of(table, ints, 1, number)
    visit_columns(_give, larger, real(table, -np.inf), ints, line, out, g, x)


@inlined
def _give_in_cell(table, kind, i, left):
    """What `_give` does: ``g`` stays with the first quarter of a cell until a later one is larger."""
    x, out = vector(table, 2, 4 * i, 4 * left), vector(table, 0, 4 * i, 4 * left)
    quarters = load_quarters(x, 0, kind, left)
    given = load_part(vector(table, 1, i, left), 0, left)
    zero = constant(given, 0.0)
    given = zero + given
    first = _one_nan(quarters[0])
    two = larger(first, _one_nan(quarters[1]))
    kept = same_bits(first, two)
    a, b = select(kept, given, zero), select(kept, zero, given)
    three = larger(two, _one_nan(quarters[2]))
    kept = same_bits(two, three)
    a, b, c = select(kept, a, zero), select(kept, b, zero), select(kept, zero, given)
    kept = same_bits(three, larger(three, _one_nan(quarters[3])))
    a, b, c, d = select(kept, a, zero), select(kept, b, zero), select(kept, c, zero), select(kept, zero, given)
    store_quarters(out, 0, kind, left, (a, b, c, d))


@inlined
def _bring_g_and_x(table, own, ints, plane, planes):
    bring(table, own, 1, word(ints, PLANE), plane, planes)
    bring(table, own, 2, word(ints, SOURCE_PLANE), plane, planes)


@inlined
def _bring_g_and_positions(table, own, ints, plane, planes):
    bring_source(table, own, ints, plane, planes)
    bring(retyped(table, FLOAT64), retyped(own, FLOAT64), 2, word(ints, SOURCE_PLANE), plane, planes)


@inlined
def _bring_back_positions(table, own, ints, plane, planes):
    bring_back_windows(retyped(table, INT64), retyped(own, INT64), ints, plane, planes)


@inlined
def _bring_back_cells(table, own, ints, plane, planes):
    bring_back(table, own, word(ints, SOURCE_PLANE), plane, planes)


@inlined
def _take_at(table, ints, line, number):
    columns, out, u = word(ints, COLUMNS), line_of(table, ints, 0, number), plane_of(table, ints, 1, line)
    positions = vector_as(table, INT64, 2, number * columns, columns)
    first, count = (line[OWN_COLUMN], 1) if GPU else (0, columns)
    for column in range(first, first + count):
        out[column] = u[positions[column]]


@kernel
def largest_positions(table, ints, part, parts):
    """``out[o]``, of int64, is the position of the first of the largest cells of window o."""
    return visit_planes(_find, bring_source, _bring_back_positions, 1, table, ints, part, parts)


@kernel
def sums_where_largest(table, ints, part, parts):
    """``out[i]`` is +0 plus each g of the windows whose position is i; arrays: out, g, positions.

    The words are those of the transposed windows.
    """
    return visit_planes(_add_to_largest, _bring_g_and_positions, bring_back_windows, 1, table, ints, part, parts)


@kernel
def give_to_largest(table, ints, part, parts):
    """``g[o]`` at the first of the largest cells of window o, +0 elsewhere; arrays: out, g, x.

    For windows that share no cell; the words are those of the windows. Shares split planes, sixteens of `quartered`
    cells, on a GPU windows.
    """
    if not GPU and word(ints, QUARTERED):
        return visit_cells(_give_in_cell, table, ints, part, parts)
    rows = word(ints, PLANE) // word(ints, COLUMNS)
    return visit_planes(_give_to_largest, _bring_g_and_x, _bring_back_cells, rows, table, ints, part, parts)


give_to_largest.cleared = True


@kernel
def cells_at(table, ints, part, parts):
    """``out[o] = u[positions[o]]``; arrays: out, u, positions."""
    return visit_share(_take_at, table, ints, part, parts, room(table))

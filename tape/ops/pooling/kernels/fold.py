"""Folding over windows: every output is ``start``, taken on by a function of each cell of its window in order.

The cells of a window are walked in row-major order, one chain for each output. Where windows repeat along the last
axis, sixteen outputs run side by side in the lanes of a vector; the others run one at a time.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np
from numba import njit

from ....numerics.engine.code_for import GPU
from ....numerics.engine.intrinsics import retyped, stack, word
from ....numerics.engine.kernel import share, vector
from ....numerics.simd.lanes import filled, inlined
from ....numerics.simd.vectors import LANES, rolled
from .gather import load_one, load_spaced, store_one, store_spaced
from .windows import (
    ADVANCE,
    AXES,
    AXIS_WORDS,
    BEGIN,
    COLUMNS,
    LINES,
    OUTER,
    PERIOD,
    PHASES,
    QUARTERED,
    REPEATS,
    SHIFT,
    SOURCE_PLANE,
    STEP,
    WINDOWS,
)

INT64 = np.int64(0)
# What is known of an output line: the number of its plane, how many source lines each of its windows spans, on a GPU
# the one column of it that a thread has, then for each axis before the last its position, and the first cell and the
# count of its window.
PLANE_NUMBER, LINES_SPANNED, OWN_COLUMN, LINE_AXES = range(4)
MAX_WORDS = LINE_AXES + 3 * 64
"""For the most axes that numpy allows."""


@njit(inline="always")
def room(table):
    """Room for what is known of a line."""
    return stack(retyped(table, INT64), MAX_WORDS)


@inlined
def line_of(table, ints, k, number):
    """A line of the ``k``-th array, which has the shape of the output."""
    columns = word(ints, COLUMNS)
    return vector(table, k, number * columns, columns)


@inlined
def plane_of(table, ints, k, line):
    """The plane of the ``k``-th array, which has the shape of the source, that the windows of a line lie in."""
    size = word(ints, SOURCE_PLANE)
    return vector(table, k, line[PLANE_NUMBER] * size, size)


@inlined
def _stand_at(ints, line, axis, i):
    """Look up window ``i`` along an axis."""
    window, place = word(ints, AXES + AXIS_WORDS * axis + 3) + 2 * i, LINE_AXES + 3 * axis
    line[place], line[place + 1], line[place + 2] = i, word(ints, window), word(ints, window + 1)


@inlined
def _count_lines(ints, line):
    line[LINES_SPANNED] = 1
    for axis in range(word(ints, OUTER)):
        line[LINES_SPANNED] *= line[LINE_AXES + 3 * axis + 2]


@inlined
def enter_line(ints, line, number):
    """Look up the windows of an output line."""
    for axis in range(word(ints, OUTER) - 1, -1, -1):
        size = word(ints, AXES + AXIS_WORDS * axis)
        _stand_at(ints, line, axis, number % size)
        number //= size
    line[PLANE_NUMBER] = number
    _count_lines(ints, line)


@inlined
def next_line(ints, line):
    """Go to the next output line, as an odometer turns."""
    for axis in range(word(ints, OUTER) - 1, -1, -1):
        i = line[LINE_AXES + 3 * axis] + 1
        if i < word(ints, AXES + AXIS_WORDS * axis):
            _stand_at(ints, line, axis, i)
            break
        _stand_at(ints, line, axis, 0)
    else:
        line[PLANE_NUMBER] += 1
    _count_lines(ints, line)


@inlined
def line_offset(ints, line, number):
    """Where the ``number``-th source line of the windows of an output line begins in its plane."""
    offset = 0
    for axis in range(word(ints, OUTER) - 1, 0, -1):
        place, window = AXES + AXIS_WORDS * axis, LINE_AXES + 3 * axis + 1
        offset += (line[window] + number % line[window + 1] * word(ints, place + 1)) * word(ints, place + 2)
        number //= line[window + 1]
    return offset + (line[LINE_AXES + 1] + number * word(ints, AXES + 1)) * word(ints, AXES + 2)


@inlined
def visit_lines(visit, table, ints, first, stop, line):
    """``visit(table, ints, line, number)`` for every output line of a range; ``line`` is `room`."""
    enter_line(ints, line, first)
    for number in range(first, stop):
        visit(table, ints, line, number)
        next_line(ints, line)
    return 0


@inlined
def visit_share(visit, table, ints, part, parts, line):
    """`visit_lines` for the output lines of a share; on a GPU for one column of one."""
    if GPU:
        columns = word(ints, COLUMNS)
        item, mine = share(word(ints, LINES) * columns, part, parts)
        if mine:
            line[OWN_COLUMN] = item % columns
            enter_line(ints, line, item // columns)
            visit(table, ints, line, item // columns)
        return 0
    start, count = share(word(ints, LINES), part, parts)
    return visit_lines(visit, table, ints, start, start + count, line)


@inlined
def visit_cells(visit, table, ints, part, parts):
    """``visit(table, kind, i, left)`` for every sixteen `quartered` cells of a share, from cell i on."""
    kind, cells = word(ints, QUARTERED), word(ints, LINES) * word(ints, COLUMNS)
    start, count = share((cells + LANES - 1) // LANES, part, parts)
    for i in range(start * LANES, min((start + count) * LANES, cells), LANES):
        visit(table, kind, i, min(LANES, cells - i))
    return 0


@inlined
def visit_columns(visit, function, start, ints, line, *given):
    """``visit(load, store, function, start, where, *given)`` for every column of a line, in lanes where regular.

    ``load`` and ``store`` take what reads and writes the columns at hand; ``where`` says which those are.
    """
    windows = word(ints, WINDOWS)
    if GPU:
        column = line[OWN_COLUMN]
        visit(load_one, store_one, function, start, (ints, line, windows + 2 * column, column, 1, 1), *given)
        return
    begin, phases, repeats = word(ints, BEGIN), word(ints, PHASES), word(ints, REPEATS)
    period, shift = word(ints, PERIOD), word(ints, SHIFT)
    for phase in range(phases):
        for i in range(0, repeats, LANES):
            window, place = windows + 2 * (begin + phase + period * i), begin + (phase << shift) + period * i
            where = (ints, line, window, place, period, repeats - i)
            visit(load_spaced, store_spaced, function, filled(start, LANES), where, *given)
    regular = phases * repeats
    for i in range(word(ints, COLUMNS) - regular):
        column = i if i < begin else i + regular
        visit(load_one, store_one, function, start, (ints, line, windows + 2 * column, column, 1, 1), *given)


@inlined
def fold(load, store, function, start, where, out, own, a, b, number):
    """``out[c] = function(…function(start, a[first cell], b[first cell], own[c], number)…)`` for the columns at hand.

    ``a`` and ``b`` are planes of the source or numbers, ``own`` a line of the output or a number.
    """
    _, _, _, place, period, left = where
    here = load(own, place, period, left)
    store(out, place, period, left, fold_cells(load, function, start, here, where, a, b, number))


@inlined
def fold_cells(load, function, total, here, where, a, b, number):
    """``function(…function(total, a[first cell], b[first cell], here, number)…)`` over the cells of windows."""
    ints, line, window, _, _, left = where
    step, advance = word(ints, STEP), word(ints, ADVANCE)
    first, count = word(ints, window), word(ints, window + 1)
    for k in range(line[LINES_SPANNED]):
        place = line_offset(ints, line, k) + first
        for _ in range(count):
            rolled()
            total = function(total, load(a, place, advance, left), load(b, place, advance, left), here, number)
            place += step
    return total

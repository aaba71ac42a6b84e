"""Weight gradients of groups with few outputs: a vector's lanes are outputs, of several groups.

Cotangents of as many outputs as a vector has lanes are transposed, strip by strip, into a panel with a vector for each
result; so is one channel of each output's group, with its padding, into an image, where a tap meets a vector. The sums
of a few taps at a time go through all results of a block, so the order is that of `weight_grad`.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ....numerics.engine.intrinsics import entry, word
from ....numerics.engine.kernel import share
from ....numerics.simd.pack import copy_element, itemsize, transpose_repeated, transpose_square, vector_size
from ....numerics.simd.sums import CHAIN_BLOCK
from . import words as w
from .places import OPERAND, OUT, SOURCE
from .small_tile import FEW_TAPS, MANY_TAPS, TapsTile, clear_vectors, compute_taps


@njit(inline="always")
def _taps(ints):
    return word(ints, w.DEPTH) // word(ints, w.CHANNELS)


@njit(inline="always")
def _fill_row(table, ints, source, target, pitch, output, outputs, count):
    """``count`` neighbours in the channels of some outputs, whose groups are ``pitch`` bytes apart, as vectors."""
    lanes, repeat = vector_size() // itemsize(table), word(ints, w.OUTPUTS)
    for i in range(0, count, lanes):
        place, square = source + i * itemsize(table), target + i * vector_size()
        transpose_repeated(table, place, pitch, square, vector_size(), outputs, count - i, output % repeat, repeat)


@njit(inline="always")
def _fill_panel(table, source, pitch, panel, outputs, count):
    """``count`` cotangents of each of some outputs, ``pitch`` bytes apart, as vectors."""
    for i in range(0, count, vector_size() // itemsize(table)):
        square = panel + i * vector_size()
        transpose_square(table, source + i * itemsize(table), pitch, square, vector_size(), outputs, count - i)


@njit(inline="always")
def _fill_image(table, ints, image, sample, channel, output, outputs, strip):
    """A strip of one channel of the groups of some outputs; what a square writes behind a row is written over."""
    rows, columns, width = word(ints, w.SOURCE), word(ints, w.LAST_SOURCE), word(ints, w.SMALL_WIDTH)
    left, size, step = word(ints, w.SMALL_LEFT), itemsize(table), word(ints, w.STEP)
    begin, most = strip * word(ints, w.SMALL_STRIP), word(ints, w.SMALL_STRIP)
    height = (min(word(ints, w.ROWS) - begin, most) - 1) * step + word(ints, w.SMALL_SPAN)
    line = (sample * word(ints, w.GROUPS) + output // word(ints, w.OUTPUTS)) * word(ints, w.CHANNELS) + channel
    source, pitch = entry(table, SOURCE) + line * rows * columns * size, word(ints, w.CHANNELS) * rows * columns * size
    first = min(max(-left, 0), width)
    last = max(min(columns - left, width), first)
    for j in range(height):
        row, target = begin * step + word(ints, w.SMALL_TOP) + j, image + j * width * vector_size()
        if 0 <= row < rows:
            clear_vectors(table, target, first)
            inside = source + (row * columns + left + first) * size
            here = target + first * vector_size()
            _fill_row(table, ints, inside, here, pitch, output, outputs, last - first)
            clear_vectors(table, target + last * vector_size(), width - last)
        else:
            clear_vectors(table, target, width)


@njit(inline="always")
def _add_run(table, ints, image, cotangents, rows, columns, start, adds, out):
    """The terms of ``rows`` of ``columns`` results each, for all taps."""
    width, step = word(ints, w.SMALL_WIDTH) * word(ints, w.STEP) * vector_size(), word(ints, w.LAST_STEP)
    if word(ints, w.LAST) == 1:  # a row of a single result: results of a column are as good as a row
        rows, columns, step = columns, rows, word(ints, w.SMALL_WIDTH) * word(ints, w.STEP)
    taps, i = _taps(ints), 0
    while i < taps:
        place, table_of = i * vector_size(), ints + 8 * (word(ints, w.SMALL_TABLE) + i)
        call = TapsTile(
            image, table_of, cotangents, rows, columns, width, step * vector_size(), start + place if start else 0,
            adds + place if adds else 0, out + place, taps - i,
        )  # fmt: skip
        if taps - i <= FEW_TAPS:
            compute_taps(table, FEW_TAPS, call)
            i += FEW_TAPS
        else:
            compute_taps(table, MANY_TAPS, call)
            i += MANY_TAPS


@njit(inline="always")
def _add_strip(table, ints, image, panel, chains, totals, done, count):
    """The terms of a strip of ``count`` results, behind ``done`` others; a run is whole rows or part of one."""
    length, total = word(ints, w.LAST), word(ints, w.SAMPLES) * word(ints, w.RESULTS)
    pitch, at = word(ints, w.SMALL_WIDTH) * word(ints, w.STEP), 0
    while at < count:
        begun, row, column = (done + at) % CHAIN_BLOCK, at // length, at % length
        left = min(CHAIN_BLOCK - begun, count - at)
        whole = column == 0 and left >= length
        rows, columns = left // length if whole else 1, length if whole else min(length - column, left)
        terms = rows * columns
        ends = begun + terms == CHAIN_BLOCK or done + at + terms == total
        adds = totals if ends and done + at + terms > CHAIN_BLOCK else 0
        place = image + (row * pitch + column * word(ints, w.LAST_STEP)) * vector_size()
        cotangents, out = panel + at * vector_size(), totals if ends else chains
        _add_run(table, ints, place, cotangents, rows, columns, chains if begun else 0, adds, out)
        at += terms


@njit(inline="always")
def _compute_outputs(table, ints, scratch, output, outputs):
    """The gradients of as many outputs, counted through all groups, as there are lanes at most."""
    size, results, depth = itemsize(table), word(ints, w.RESULTS), word(ints, w.DEPTH)
    panel = scratch + word(ints, w.SMALL_IMAGE)
    chains = panel + word(ints, w.SMALL_PANEL)
    totals, done, all_outputs = chains + depth * vector_size(), 0, word(ints, w.GROUPS) * word(ints, w.OUTPUTS)
    most, of_channel = word(ints, w.SMALL_STRIP) * word(ints, w.LAST), _taps(ints) * vector_size()
    clear_vectors(table, totals, depth)  # of no sample the sums are +0
    for sample in range(word(ints, w.SAMPLES)):
        line = entry(table, OPERAND) + (sample * all_outputs + output) * results * size
        first = 0
        while first < results:  # a range by what is no constant would raise where that is 0
            count = min(results - first, most)
            _fill_panel(table, line + first * size, results * size, panel, outputs, count)
            for c in range(word(ints, w.CHANNELS)):
                _fill_image(table, ints, scratch, sample, c, output, outputs, first // most)
                at = c * of_channel
                _add_strip(table, ints, scratch, panel, chains + at, totals + at, done, count)
            done += count
            first += most
    for i in range(outputs):
        group, own = (output + i) // word(ints, w.OUTPUTS), (output + i) % word(ints, w.OUTPUTS)
        for t in range(depth):
            target = entry(table, OUT) + ((group * depth + t) * word(ints, w.OUTPUTS) + own) * size
            copy_element(table, totals + t * vector_size() + i * size, target)


@njit(inline="always")
def compute_small_groups(table, ints, scratch, part, parts):
    """A share of all weight gradients: a range of outputs."""
    lanes = vector_size() // itemsize(table)
    start, count = share(word(ints, w.GROUPS) * word(ints, w.OUTPUTS), part, parts)
    for output in range(start, start + count, lanes):
        _compute_outputs(table, ints, scratch, output, min(start + count - output, lanes))

"""Weight gradients of groups of one channel and one output: a vector's lanes are groups.

Source and cotangents of as many groups as a vector has lanes are transposed, strip by strip: into an image with its
padding, where a tap meets a vector, and into a panel with a vector for each result. The sums of a few taps at a time
go through all results of a block, so the order is that of `weight_grad`.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ....numerics.engine.intrinsics import entry, word
from ....numerics.engine.kernel import share
from ....numerics.simd.pack import copy_element, itemsize, transpose_square, vector_size
from ....numerics.simd.sums import CHAIN_BLOCK
from . import words as w
from .alone_tile import FEW_TAPS, MANY_TAPS, AloneTile, clear_vectors, compute_alone
from .places import OPERAND, OUT, SOURCE


@njit(inline="always")
def _transpose(table, source, pitch, target, groups, count):
    """``count`` neighbours of each of some groups, ``pitch`` bytes apart, as so many vectors."""
    lanes = vector_size() // itemsize(table)
    for i in range(0, count, lanes):
        place = target + i * vector_size()
        transpose_square(table, source + i * itemsize(table), pitch, place, vector_size(), groups, count - i)


@njit(inline="always")
def _fill_image(table, ints, image, sample, group, groups, strip):
    """The image of a strip of some groups, row after row; what a square writes behind a row is written over."""
    rows, columns, width = word(ints, w.SOURCE), word(ints, w.LAST_SOURCE), word(ints, w.ALONE_WIDTH)
    left, size, step = word(ints, w.ALONE_LEFT), itemsize(table), word(ints, w.STEP)
    begin, most = strip * word(ints, w.ALONE_STRIP), word(ints, w.ALONE_STRIP)
    height = (min(word(ints, w.ROWS) - begin, most) - 1) * step + word(ints, w.ALONE_SPAN)
    source = entry(table, SOURCE) + (sample * word(ints, w.GROUPS) + group) * rows * columns * size
    first = min(max(-left, 0), width)
    last = max(min(columns - left, width), first)
    for j in range(height):
        row, target = begin * step + word(ints, w.ALONE_TOP) + j, image + j * width * vector_size()
        if 0 <= row < rows:
            clear_vectors(table, target, first)
            inside = source + (row * columns + left + first) * size
            _transpose(table, inside, rows * columns * size, target + first * vector_size(), groups, last - first)
            clear_vectors(table, target + last * vector_size(), width - last)
        else:
            clear_vectors(table, target, width)


@njit(inline="always")
def _add_run(table, ints, image, cotangents, rows, columns, start, adds, out):
    """The terms of ``rows`` of ``columns`` results each, for all taps."""
    width, step = word(ints, w.ALONE_WIDTH) * word(ints, w.STEP) * vector_size(), word(ints, w.LAST_STEP)
    if word(ints, w.LAST) == 1:  # a row of a single result: results of a column are as good as a row
        rows, columns, step = columns, rows, word(ints, w.ALONE_WIDTH) * word(ints, w.STEP)
    taps, i = word(ints, w.DEPTH), 0
    while i < taps:
        place, table_of = i * vector_size(), ints + 8 * (word(ints, w.ALONE_TABLE) + i)
        call = AloneTile(
            image, table_of, cotangents, rows, columns, width, step * vector_size(), start + place if start else 0,
            adds + place if adds else 0, out + place, taps - i,
        )  # fmt: skip
        if taps - i <= FEW_TAPS:
            compute_alone(table, FEW_TAPS, call)
            i += FEW_TAPS
        else:
            compute_alone(table, MANY_TAPS, call)
            i += MANY_TAPS


@njit(inline="always")
def _add_strip(table, ints, image, panel, chains, totals, done, count):
    """The terms of a strip of ``count`` results, behind ``done`` others; a run is whole rows or part of one."""
    length, total = word(ints, w.LAST), word(ints, w.SAMPLES) * word(ints, w.RESULTS)
    pitch, at = word(ints, w.ALONE_WIDTH) * word(ints, w.STEP), 0
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
def _compute_groups(table, ints, scratch, group, groups):
    """The gradients of as many groups as there are lanes at most."""
    size, results, taps = itemsize(table), word(ints, w.RESULTS), word(ints, w.DEPTH)
    panel = scratch + word(ints, w.ALONE_IMAGE)
    chains = panel + word(ints, w.ALONE_PANEL)
    totals, done = chains + taps * vector_size(), 0
    most = word(ints, w.ALONE_STRIP) * word(ints, w.LAST)
    clear_vectors(table, totals, taps)  # of no sample the sums are +0
    for sample in range(word(ints, w.SAMPLES)):
        line = entry(table, OPERAND) + (sample * word(ints, w.GROUPS) + group) * results * size
        for first in range(0, results, most):
            count = min(results - first, most)
            _fill_image(table, ints, scratch, sample, group, groups, first // most)
            _transpose(table, line + first * size, results * size, panel, groups, count)
            _add_strip(table, ints, scratch, panel, chains, totals, done, count)
            done += count
    for g in range(groups):
        for t in range(taps):
            target = entry(table, OUT) + ((group + g) * taps + t) * size
            copy_element(table, totals + t * vector_size() + g * size, target)


@njit(inline="always")
def compute_alone_weights(table, ints, scratch, part, parts):
    """A share of all weight gradients: a range of groups."""
    lanes = vector_size() // itemsize(table)
    start, count = share(word(ints, w.GROUPS), part, parts)
    for group in range(start, start + count, lanes):
        _compute_groups(table, ints, scratch, group, min(start + count - group, lanes))

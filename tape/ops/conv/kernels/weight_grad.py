"""Weight gradients of convolutions: per weight one fma chain over (sample, result), in blocks of 256.

A chain goes through all samples and a part computes many of them, an image of one strip after the other. Chains
that go on behind a strip are kept in memory until the next one; totals are added up in the output.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ....numerics.engine.intrinsics import entry, word
from ....numerics.engine.kernel import kernel, share
from ....numerics.simd.pack import PANEL_VECTORS, itemsize, pack_panel, vector_size
from ....numerics.simd.sums import CHAIN_BLOCK
from . import words as w
from .image import fill_image
from .places import LAST, OPERAND, OUT, SOURCE, own_memory
from .small_groups import compute_small_groups
from .tile import NARROW, SHORT, TALL, WeightTile, compute_weights, height_of


@njit(inline="always")
def _add_terms(table, call):
    """The same terms of the sums of all rows, tile by tile."""
    narrow, short, i = call.columns * itemsize(table) <= vector_size(), height_of(SHORT), 0
    while i < call.rows:
        left, distance = call.rows - i, i * call.row
        start = call.start + distance if call.start else 0
        adds = call.adds + distance if call.adds else 0
        here = WeightTile(
            call.image, call.offsets + 8 * i, call.cotangents, call.depth, start, adds, call.out + distance, call.row,
            left, call.columns,
        )  # fmt: skip
        if narrow:
            compute_weights(table, NARROW, here)
            i += height_of(NARROW)
        elif (left + short - 1) // short * short < height_of(TALL):
            compute_weights(table, SHORT, here)
            i += short
        else:
            compute_weights(table, TALL, here)
            i += height_of(TALL)


@njit(inline="always")
def _add_strip(table, ints, image, panel, chains, out, offsets, rows, columns, done, count):
    """The terms of a strip for some rows of weights and one panel of outputs; ``done`` terms were added before."""
    pitch, total = word(ints, w.OUTPUTS) * itemsize(table), word(ints, w.SAMPLES) * word(ints, w.RESULTS)
    stop, at = done + count, done
    while True:
        begun = at % CHAIN_BLOCK
        depth = min(CHAIN_BLOCK - begun, stop - at)
        ends = begun + depth == CHAIN_BLOCK or at + depth == total
        cotangents = panel + (at - done) * PANEL_VECTORS * vector_size()
        call = WeightTile(
            image + (at - done) * itemsize(table), offsets, cotangents, depth, chains if begun else 0,
            out if ends and at >= CHAIN_BLOCK else 0, out if ends else chains, pitch, rows, columns,
        )  # fmt: skip
        _add_terms(table, call)
        at += depth
        if at == stop:
            break


@njit(inline="always")
def _compute_rows(table, ints, scratch, group, top, rows):
    """Some rows of the gradients of one group: sample after sample, strip after strip, panel after panel."""
    size, outputs, results = itemsize(table), word(ints, w.OUTPUTS), word(ints, w.RESULTS)
    taps, strips = word(ints, w.DEPTH) // word(ints, w.CHANNELS), word(ints, w.STRIPS)
    most, width = word(ints, w.STRIP) * word(ints, w.INNER), PANEL_VECTORS * vector_size() // size
    panel = scratch + word(ints, w.IMAGE)
    chains, offsets = panel + word(ints, w.PANEL), ints + 8 * (word(ints, w.OFFSET_TABLE) + top)
    out, done = entry(table, OUT) + (group * word(ints, w.DEPTH) + top) * outputs * size, 0
    for unit in range(max(word(ints, w.SAMPLES) * strips, 1)):  # of no sample the sums are +0
        sample, strip = unit // strips, unit % strips
        count = min(results - strip * most, most) if word(ints, w.SAMPLES) else 0
        if count:
            last = (top + rows - 1) // taps + 1
            fill_image(table, ints, entry(table, SOURCE), scratch, sample, group, top // taps, last, strip)
        for j in range(0, outputs, width):
            columns, channel = min(outputs - j, width), (sample * word(ints, w.GROUPS) + group) * outputs + j
            cotangents = entry(table, OPERAND) + (channel * results + strip * most) * size
            pack_panel(table, cotangents, size, results * size, count, columns, panel)
            here, place = chains + j * size, out + j * size
            _add_strip(table, ints, scratch, panel, here, place, offsets, rows, columns, done, count)
        done += count


@kernel
def convolve_weights(table, ints, part, parts):
    """The weight gradients of a `Plan`, as (groups, channels and taps, outputs).

    Arrays: out, source, cotangents, scratch. Shares are ranges of rows, counted through all groups, or of outputs.
    """
    depth, scratch = word(ints, w.DEPTH), own_memory(table, LAST, part, word(ints, w.GRADIENT))
    if word(ints, w.SMALL_IMAGE):
        compute_small_groups(table, ints, scratch, part, parts)
        return 0
    start, count = share(word(ints, w.GROUPS) * depth, part, parts)
    stop = start + count
    while start < stop:
        group, top = start // depth, start % depth
        rows = min(depth - top, stop - start)
        _compute_rows(table, ints, scratch, group, top, rows)
        start += rows
    return 0

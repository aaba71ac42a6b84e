"""Convolutions and their adjoints by the input: per result one fma chain over (channel, tap), in blocks of 256.

Nothing is unfolded in memory: each part copies strips of the source into images that fit a cache (`conv_plan`,
`conv_image`) and computes tiles of results from them (`conv_micro`). Strips, tiles and shares split outputs only,
so they cannot be seen in the bits.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ....numerics.engine.intrinsics import entry, word
from ....numerics.engine.kernel import kernel, share
from ....numerics.simd.pack import PANEL_VECTORS, copy_element, itemsize, vector_size
from . import words as w
from .between import merge_rows
from .image import fill_image
from .places import LAST, OPERAND, OUT, SOURCE, own_memory
from .tile import HALF, LONG, NARROW, ROW_VECTORS, SHORT, TALL, ResultTile, compute_results, height_of, tiles

_counted = njit(inline="always")(tiles)


@njit(inline="always")
def _tiles(outputs):
    """How many tall and how many short tiles a group has."""
    return _counted(outputs, height_of(TALL), height_of(SHORT))


@njit(inline="always")
def _first_row(tile, tall_tiles):
    """The first row of a tile of a group, of which the first ones are tall."""
    tall = min(tile, tall_tiles)
    return tall * height_of(TALL) + (tile - tall) * height_of(SHORT)


@kernel
def pack_weights(table, ints, part, parts):
    """Weights tile by tile, for each term the numbers of all rows beside each other; shares are ranges of tiles.

    Rows beyond the last one hold the last one's numbers again.
    """
    size, outputs, classes = itemsize(table), word(ints, w.WEIGHT_OUTPUTS), word(ints, w.WEIGHT_CLASSES)
    tall, short = _tiles(outputs)
    tiles = tall + short
    start, count = share(word(ints, w.WEIGHT_GROUPS) * classes * tiles, part, parts)
    for i in range(start, start + count):
        group, c, tile = i // (classes * tiles), i // tiles % classes, i % tiles
        row, height = _first_row(tile, tall), height_of(TALL) if tile < tall else height_of(SHORT)
        terms, before = word(ints, w.WEIGHT_TABLES + 2 * c), word(ints, w.WEIGHT_TABLES + 2 * c + 1)
        place = (group * word(ints, w.WEIGHT_DEPTH) + before) * word(ints, w.WEIGHT_PADDED) + row * terms
        target, offsets = entry(table, OUT) + place * size, w.WEIGHT_TABLES + 2 * classes + before
        for r in range(height):
            own = group * word(ints, w.GROUP_STRIDE) + min(row + r, outputs - 1) * word(ints, w.OUTPUT_STRIDE)
            for k in range(terms):
                source = entry(table, SOURCE) + (own + word(ints, offsets + k)) * size
                copy_element(table, source, target + (k * height + r) * size)
    return 0


@njit(inline="always")
def _compute_strip(table, ints, image, sample, group, strip, tile):
    """The results of a strip for one tile of outputs, counted through all classes."""
    size, results, outputs = itemsize(table), word(ints, w.RESULTS), word(ints, w.OUTPUTS)
    tall, short = _tiles(outputs)
    tiles = tall + short
    c, row, high = tile // tiles, _first_row(tile % tiles, tall), tile % tiles < tall
    of_class = word(ints, w.CLASS_TABLE) + 2 * c
    terms, before = word(ints, of_class), word(ints, of_class + 1)
    place = (group * word(ints, w.DEPTH) + before) * word(ints, w.PADDED) + row * terms
    weights, offsets = entry(table, OPERAND) + place * size, ints + 8 * (word(ints, w.OFFSET_TABLE) + before)
    channel = group * outputs + row
    bias = entry(table, LAST) + channel * size if word(ints, w.BIAS) else 0
    first, most = strip * word(ints, w.STRIP) * word(ints, w.INNER), word(ints, w.STRIP) * word(ints, w.INNER)
    line = (sample * word(ints, w.GROUPS) * outputs + channel) * word(ints, w.CLASSES) + c
    out, pitch = entry(table, OUT) + (line * results + first) * size, word(ints, w.CLASSES) * results * size
    single = outputs == 1
    count, width = min(results - first, most), (ROW_VECTORS if single else PANEL_VECTORS) * vector_size() // size
    for q in range(0, count, width):
        here, left = q * size, count - q
        call = ResultTile(weights, image + here, offsets, terms, out + here, pitch, outputs - row, left, bias)
        if single and left <= width // 2:
            compute_results(table, HALF, call)
        elif single:
            compute_results(table, LONG, call)
        elif high and left <= width // 2:
            compute_results(table, NARROW, call)
        elif high:
            compute_results(table, TALL, call)
        else:
            compute_results(table, SHORT, call)


@kernel
def convolve(table, ints, part, parts):
    """The results of a `Plan`, as (samples, groups, outputs, classes, results).

    Arrays: out, source, packed weights, the bias if there is one, scratch. Shares are ranges of tiles, counted
    through classes, strips, samples and groups.
    """
    tall, short = _tiles(word(ints, w.OUTPUTS))
    tiles = word(ints, w.CLASSES) * (tall + short)
    strips, samples, groups = word(ints, w.STRIPS), word(ints, w.SAMPLES), word(ints, w.GROUPS)
    image = own_memory(table, LAST + word(ints, w.BIAS), part, word(ints, w.IMAGE))
    start, count = share(groups * samples * strips * tiles, part, parts)
    stop = start + count
    while start < stop:
        unit, first = start // tiles, start % tiles
        strip, sample, group = unit % strips, unit // strips % samples, unit // (strips * samples)
        fill_image(table, ints, entry(table, SOURCE), image, sample, group, 0, word(ints, w.CHANNELS), strip)
        last = min(tiles, first + stop - start)
        for tile in range(first, last):
            _compute_strip(table, ints, image, sample, group, strip, tile)
        start += last - first
    return 0


@njit(inline="always")
def _put_apart(table, source, out, count, apart):
    """Write neighbours ``apart`` bytes from each other."""
    for q in range(count):
        copy_element(table, source + q * itemsize(table), out + q * apart)


@kernel
def interleave(table, ints, part, parts):
    """Results class by class, put between each other; shares are ranges of lines, one for each sample and channel."""
    size, rows, classes = itemsize(table), word(ints, w.INTERLEAVED_ROWS), word(ints, w.APART)
    start, count = share(word(ints, w.LINES), part, parts)
    for line in range(start, start + count):
        source = entry(table, SOURCE) + line * word(ints, w.SOURCE_LINE) * size
        target = entry(table, OUT) + line * word(ints, w.LINE) * size
        for row in range(0, rows, 2 if classes == 2 else 1):
            of_row = w.ROW_TABLE + 3 * row
            x, out = source + word(ints, of_row) * size, target + word(ints, of_row + 1) * size
            if classes == 2:
                odd = source + word(ints, of_row + 3) * size
                merge_rows(table, x, odd, out, word(ints, of_row + 2), word(ints, of_row + 5))
            else:
                _put_apart(table, x, out, word(ints, of_row + 2), classes * size)
    return 0

"""Convolutions on CUDA devices: tiles chosen from the words of the CPU's kernels, and their launches."""

from functools import partial
from typing import Any

import numpy as np

from ...numerics.cuda.tiles import BLOCK, PROCESSORS, VECTOR_BYTES, X_FAST, X_VECTOR, Tile
from ...numerics.cuda.written import (
    NEWEST_BYTES,
    OLDER_BYTES,
    REALS,
    SCRATCH,
    WORDS,
    CudaForm,
    Launch,
    Triple,
    Words,
    blocks_of,
    divisor,
    written,
)
from .kernels import words as at

SOURCE = "tape/ops/conv/convolutions.cu"
DIRECT = "tape/ops/conv/direct.cu"
PLANES = "tape/ops/conv/planes.cu"

FEW_OUTPUTS = 2
"""Outputs of a group for which a tile is mostly empty."""

FEW_TERMS = 1 << 22
"""Products of all weight gradients that threads make faster by themselves than tiles do."""

ALONE, ALONE_WEIGHTS = 256, (32, 128)
"""Threads of a block that work alone: by outputs, and by weights, few or more."""

OUT, INPUT, OPERAND, BIAS = range(4)
"""Positions of the table."""

EACH_ALONE = 4
"""Results of a thread that works alone, where there are enough of them for a device."""

PLANE_BYTES, PLANE_CHAINS = 40 << 10, 128
"""Shared memory for the rows of single channels, and weights of a thread block, one for each block of terms."""

PLACE_BYTES = 16
"""Bytes of an entry of the kernels' tables; twice as many where axes lie between the first and the last."""

TILES = {
    4: {
        "tall": Tile(128, 128, 8, 16, 8, 4, 2, 4, 2),
        "flat": Tile(64, 128, 16, 8, 8, 4, 2, 3, 3),
        "low": Tile(32, 128, 16, 4, 8, 4, 2, 3, 4),
        "thin": Tile(16, 256, 16, 4, 8, 4, 4, 3, 4),
        "patch": Tile(32, 64, 16, 4, 4, 4, 2, 3, 4),
        "square": Tile(32, 32, 32, 2, 2, 2, 1, 2, 4),
        "few": Tile(16, 32, 16, 2, 4, 4, 1, 3, 8),
    },
    8: {
        "flat": Tile(64, 128, 8, 8, 8, 4, 2, 3, 2),
        "low": Tile(32, 128, 8, 4, 8, 4, 2, 3, 3),
        "thin": Tile(16, 256, 8, 4, 8, 4, 4, 3, 3),
        "patch": Tile(32, 64, 16, 4, 4, 4, 2, 3, 4),
        "square": Tile(32, 32, 16, 2, 2, 2, 1, 3, 4),
        "few": Tile(16, 32, 16, 2, 4, 4, 1, 3, 8),
    },
}
"""Tiles of results, outputs by positions, by bytes of an element."""

WEIGHT_TILES = {
    4: {
        "wide": Tile(128, 64, 16, 8, 8, 4, 1, 3, 3),
        "square": Tile(64, 64, 16, 4, 4, 2, 1, 3, 3),
        "middle": Tile(64, 32, 16, 4, 4, 4, 1, 3, 4),
        "narrow": Tile(64, 16, 16, 4, 2, 8, 2, 4, 6),
    },
    8: {
        "wide": Tile(128, 64, 8, 8, 8, 4, 1, 3, 2),
        "square": Tile(64, 64, 8, 8, 4, 4, 2, 3, 3),
        "middle": Tile(64, 32, 16, 4, 4, 4, 1, 3, 4),
        "narrow": Tile(128, 16, 8, 8, 4, 8, 1, 3, 4),
    },
}
"""Tiles of weight gradients, terms by outputs, by bytes of an element."""

SMALLER = {"tall": "flat", "flat": "patch", "low": "patch", "thin": "few", "patch": "square", "square": "", "few": ""}
"""What a tile gives way to where there are too few of it for a device."""


def _grid(words: Words, tile: Tile) -> int:
    outputs, positions = words[at.OUTPUTS], words[at.SAMPLES] * words[at.RESULTS]
    return words[at.GROUPS] * words[at.CLASSES] * blocks_of(outputs, tile.bm) * blocks_of(positions, tile.bn)


def chosen(size: int, words: Words, shared: int = NEWEST_BYTES) -> Tile:
    """The tile for a convolution: about as high as there are outputs, and small enough that there are many.

    A block has so many bytes of ``shared`` memory.
    """
    tiles, heights = TILES[size], (("tall", 64), ("flat", 32), ("low", 16), ("thin", -1))
    name = next(name for name, above in heights if words[at.OUTPUTS] > above and name in tiles)
    few = PROCESSORS * 7 // 8
    while SMALLER[name] and (_grid(words, tiles[name]) < few or _bytes(size, tiles[name], words) > shared):
        name = SMALLER[name]
    return tiles[name]


def _bytes(size: int, tile: Tile, words: Words) -> int:
    """Shared memory of a tile of results that keeps its totals there, with the tables of places."""
    return tile.shared(size, totals=True) + 2 * BLOCK * PLACE_BYTES * (1 + _middle(words))


def chosen_weights(size: int, words: Words, shared: int = NEWEST_BYTES) -> tuple[Tile, int]:
    """The tile for weight gradients, and blocks of terms of a thread block; 0 if one has all of them."""
    outputs, terms = words[at.OUTPUTS], words[at.SAMPLES] * words[at.RESULTS]
    blocks = blocks_of(terms, BLOCK)
    wide = (
        shared > OLDER_BYTES
        and words[at.GROUPS] * blocks_of(words[at.DEPTH], 128) * blocks_of(outputs, 64) * blocks >= 8 * PROCESSORS
    )
    name = "narrow" if outputs <= 16 else "middle" if outputs <= 32 else "wide" if wide else "square"
    tile = WEIGHT_TILES[size][name]
    tiles = words[at.GROUPS] * blocks_of(words[at.DEPTH], tile.bm) * blocks_of(outputs, tile.bn)
    if blocks == 0 or (shared > OLDER_BYTES and (blocks == 1 or tiles >= 4 * PROCESSORS)):
        return tile, 0
    return tile, max(tiles * blocks // (8 * PROCESSORS), 1)


def _launch(
    entry: str, size: int, tile: Tile, words: Words, grid: Triple, pointers: Words, each: int, a: int
) -> Launch:
    middle, weights = _middle(words), entry == "convolve_weights"
    table = 2 * BLOCK * PLACE_BYTES * (1 + middle)
    if weights:
        table += tile.bm * PLACE_BYTES * (1 + middle) + 2 * BLOCK * 8
    shared = tile.shared(size, totals=not each) + table
    what = ("WEIGHTS", int(each > 0)) if weights else ("RESULT_MODE", a)
    defines = (*tile.defines(size), what, ("MIDDLE_AXES", middle))
    return Launch(SOURCE, entry, defines, grid, (tile.threads, 1, 1), shared, pointers, (each,))


def _middle(words: Words) -> int:
    """Whether there are axes between the first and the last: their table of rows is not just the first row."""
    return int(words[at.MIDDLE_TAPS] * words[at.MIDDLE] != 1 or words[words[at.MIDDLE_TABLE]] != 0)


def _is_direct(words: Words) -> bool:
    return words[at.OUTPUTS] <= FEW_OUTPUTS


def _direct(words: Words, size: int, pointers: Words) -> Launch:
    """The launch of a convolution with a thread for each output, or for some."""
    each, grid = _shared_out(words)
    return _alone("convolve_direct", size, words, (grid, 1, 1), ALONE, pointers, size, ("PER", each))


def _shared_out(words: Words) -> tuple[int, int]:
    """Results of a thread, and blocks of threads."""
    chains, results = words[at.GROUPS] * words[at.CLASSES] * words[at.OUTPUTS], words[at.SAMPLES] * words[at.RESULTS]
    few, most = (chains * blocks_of(results, each * ALONE) for each in (EACH_ALONE, 1))
    return (EACH_ALONE, few) if few >= PROCESSORS else (1, most)


def _alone(
    entry: str, size: int, words: Words, grid: Triple, threads: int, pointers: Words, beside: int, more: tuple[str, int]
) -> Launch:
    """A launch of direct.cu, with room for a block's places and as many numbers of some bytes beside."""
    shared = BLOCK * (PLACE_BYTES * (1 + _middle(words)) + beside)
    defines = (("REAL", REALS[size]), ("THREADS", threads), ("MIDDLE_AXES", _middle(words)), more)
    return Launch(DIRECT, entry, defines, grid, (threads, 1, 1), shared, pointers, ())


def _of_planes(words: Words, together: int, size: int) -> tuple[Words, int] | None:
    """What a launch of planes.cu is told, and the elements of the rows that so many results read.

    None where groups have more channels than one, axes between the first and the last, or too much for shared memory.
    """
    results, columns, step, last_step = (words[i] for i in (at.RESULTS, at.LAST, at.STEP, at.LAST_STEP))
    if words[at.CHANNELS] != 1 or words[at.DEPTH] > BLOCK or _middle(words) or results == 0:
        return None
    phases = words[words[at.PHASE_TABLE] :][: words[at.PHASES]]
    taps = words[words[at.LAST_TABLE] :][: words[at.LAST_TAPS]]
    low, extent = words[at.LOWEST] * step + min(phases), words[at.SPAN] * step + max(phases) - min(phases) + 1
    pitch = ((columns - 1) * last_step + max(taps) - min(taps) + 1) | 1
    planes = min(words[at.SAMPLES], (together + results - 2) // results + 1)
    lines = min(planes * results // columns, (together + columns - 2) // columns + 1)
    elements = (lines * step + planes * extent) * pitch
    if elements * size > PLANE_BYTES or words[at.SOURCE_PLANE] >= 1 << 31:
        return None
    sizes = (words[at.GROUPS], words[at.SAMPLES] * results, results, *divisor(results), columns, *divisor(columns))
    source = (words[at.SOURCE], words[at.LAST_SOURCE])
    return (low, min(taps), extent, pitch, *sizes, step, last_step, *source), elements


def _planes(words: Words, size: int, pointers: Words) -> Launch | None:
    """The launch of a convolution of single channels, if it is one."""
    each, grid = _shared_out(words)
    found = _of_planes(words, each * ALONE, size)
    if found is None:
        return None
    own, elements = found
    shared, defines = elements * size + BLOCK * (size + 4), (*_defines_of_planes(size), ("PER", each))
    return Launch(PLANES, "convolve_planes", defines, (grid, 1, 1), (ALONE, 1, 1), shared, pointers, own)


def _weights_of_planes(words: Words, size: int, blocks: int, pointers: Words) -> Launch | None:
    """The launch of the weight gradients of single channels, if they are."""
    chains, outputs = words[at.DEPTH] * words[at.OUTPUTS], words[at.OUTPUTS]
    together = min(blocks, PLANE_CHAINS // chains)
    found = _of_planes(words, together * BLOCK, size) if together else None
    if found is None:
        return None
    own, elements = found
    shared = (elements + outputs * together * (BLOCK + 1)) * size
    defines, grid = (*_defines_of_planes(size), ("WEIGHTS", 1)), (words[at.GROUPS], 1, blocks_of(blocks, together))
    entry, told = "convolve_weights_planes", (*own, together, elements)
    return Launch(PLANES, entry, defines, grid, (ALONE, 1, 1), shared, pointers, told)


def _defines_of_planes(size: int) -> tuple[tuple[str, int | str], ...]:
    return (("REAL", REALS[size]), ("THREADS", ALONE), ("MIDDLE_AXES", 0))


def _is_direct_weights(words: Words) -> bool:
    terms = words[at.SAMPLES] * words[at.RESULTS]
    return _is_direct(words) or _weights(words) * terms <= FEW_TERMS


def _require_32_bits(words: Words) -> None:
    if max(words[at.SAMPLES] * words[at.RESULTS], words[at.DEPTH], words[at.OUTPUTS]) >= 1 << 31:
        raise OverflowError(
            f"dgrr: a convolution on a CUDA device: expected fewer than 2^31 positions of all samples, got "
            f"{words[at.SAMPLES] * words[at.RESULTS]}; split the batch"
        )


def launches(dtype: np.dtype[Any], words: Words, shared: int = NEWEST_BYTES) -> tuple[Launch, ...]:
    """The launches of ``convolve``, whose weights were packed by the form of ``pack_weights``."""
    size, pointers = dtype.itemsize, (OUT, INPUT, OPERAND, BIAS if words[at.BIAS] else OUT, WORDS)
    tile = chosen(size, words, shared)
    grid = _grid(words, tile)
    if grid == 0:
        return ()
    _require_32_bits(words)
    if _is_direct(words):
        return (_planes(words, size, pointers) or _direct(words, size, pointers),)
    a = X_VECTOR if words[at.PADDED] % (VECTOR_BYTES // size) == 0 else X_FAST
    return (_launch("convolve", size, tile, words, (grid, 1, 1), pointers, 0, a),)


def weight_launches(dtype: np.dtype[Any], words: Words, shared: int = NEWEST_BYTES) -> tuple[Launch, ...]:
    """The launches of ``convolve_weights``."""
    size, count = dtype.itemsize, _weights(words)
    tile, each = chosen_weights(size, words, shared)
    if count == 0:
        return ()
    _require_32_bits(words)
    blocks = blocks_of(words[at.SAMPLES] * words[at.RESULTS], BLOCK)
    tiles = words[at.GROUPS] * blocks_of(words[at.DEPTH], tile.bm) * blocks_of(words[at.OUTPUTS], tile.bn)
    grid = (tiles, 1, blocks_of(blocks, each) if each else 1)
    pointers = (OUT, INPUT, OPERAND, OUT, WORDS, SCRATCH)
    fold = _each_element("fold", size, count, pointers, (count, blocks))
    if blocks and _is_direct_weights(words):
        each_block = _weights_of_planes(words, size, blocks, pointers) or _direct_weights(words, size, blocks, pointers)
        return (each_block, *(fold,) * (blocks > 1))
    main = _launch("convolve_weights", size, tile, words, grid, pointers, each, X_FAST)
    return (main, fold) if each else (main,)


def _direct_weights(words: Words, size: int, blocks: int, pointers: Words) -> Launch:
    """The launch of weight gradients with a thread for each of them and each block of results."""
    chains = words[at.DEPTH] * words[at.OUTPUTS]
    threads = ALONE_WEIGHTS[chains > ALONE_WEIGHTS[0]]
    grid = (words[at.GROUPS] * blocks_of(chains, threads), 1, blocks)
    return _alone("convolve_weights_direct", size, words, grid, threads, pointers, 8, ("WEIGHTS", 1))


def _weights(words: Words) -> int:
    return words[at.GROUPS] * words[at.DEPTH] * words[at.OUTPUTS]


def weight_scratch(dtype: np.dtype[Any], words: Words, shared: int = NEWEST_BYTES) -> int:
    """Bytes for the sums of blocks of terms."""
    _, each = chosen_weights(dtype.itemsize, words, shared)
    blocks = blocks_of(words[at.SAMPLES] * words[at.RESULTS], BLOCK)
    return _weights(words) * blocks * dtype.itemsize if each or _is_direct_weights(words) else 0


def _each_element(entry: str, size: int, count: int, pointers: Words, words: Words = ()) -> Launch:
    grid = (blocks_of(count, 256), 1, 1)
    return Launch(SOURCE, entry, (("REAL", REALS[size]),), grid, (256, 1, 1), 0, pointers, words)


def pack_launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
    """The launch of ``pack_weights``: in an order that only the form of ``convolve`` reads."""
    count = words[at.WEIGHT_GROUPS] * words[at.WEIGHT_DEPTH] * words[at.WEIGHT_PADDED]
    pointers = (OUT, INPUT, OUT, OUT, WORDS)
    return (_each_element("pack_weights", dtype.itemsize, count, pointers),) if count else ()


def interleave_launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
    """The launch of ``interleave``, with a warp for the rows of a line that lie between each other."""
    lines, rows = words[at.LINES], words[at.INTERLEAVED_ROWS] // words[at.APART]
    if lines * rows == 0:
        return ()
    threads = lines * blocks_of(rows, 8) * 256
    return (_each_element("interleave", dtype.itemsize, threads, (OUT, INPUT, OUT, OUT, WORDS)),)


def _none(dtype: np.dtype[Any], words: Words) -> int:
    return 0


written["pack_weights"] = CudaForm(pack_launches, _none)
written["convolve"] = CudaForm(launches, _none, CudaForm(partial(launches, shared=OLDER_BYTES), _none))
written["interleave"] = CudaForm(interleave_launches, _none)
_OLDER = CudaForm(partial(weight_launches, shared=OLDER_BYTES), partial(weight_scratch, shared=OLDER_BYTES))
written["convolve_weights"] = CudaForm(weight_launches, weight_scratch, _OLDER)

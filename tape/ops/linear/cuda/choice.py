"""How a matrix product is computed on a CUDA device: the tile that takes the shortest time, as estimated here.

Tiles split outputs only, and sums are split where the contract splits them, so the choice cannot be seen in the bits.
It follows from the words of a product alone; the numbers were found on an H200.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ....numerics.cuda.tiles import BLOCK, PROCESSORS, TILES, VECTOR_BYTES, Tile
from ....numerics.cuda.written import NEWEST_BYTES, Words, blocks_of
from ..kernels import product as at

SPEED = {"wide": 1.0, "tall": 0.93, "flat": 0.93, "split": 0.965, "thin": 0.9, "half": 0.85, "low": 0.75}
"""The large tiles, and how fast a multiprocessor is that is busy with each."""

ENOUGH, ENOUGH_SPLIT = PROCESSORS * 7 // 8, PROCESSORS * 4 // 3
"""Thread blocks from which large tiles are worth it: as they are, and with their terms split."""

START = 120
"""For how many terms' time a block waits as it begins and ends; of several on a multiprocessor others go on then."""

FOLD, LAUNCH = 50, 600_000
"""The time of writing and reading a sum of a block of terms, and of another launch: in a multiprocessor's fma."""

SUMS_BYTES = 1 << 30
"""The largest memory for sums of blocks of terms."""

COPIED_BYTES = 1 << 28
"""The largest operand that is transposed before a product."""

COPIED_ROWS, COPIED_WORK = 512, 1 << 28
"""Rows of a product, and multiplications, from which transposing its second operand is worth it."""


class ChosenTile(NamedTuple):
    """How a product is computed: its tile, blocks of terms of a thread block if they are split, transposed b."""

    tile: Tile
    each: int
    transposed: bool


def chosen(itemsize: int, words: Words, shared: int = NEWEST_BYTES) -> ChosenTile:
    """The large tile that is done first, or a small one where there are too few of these for a device.

    A block has so many bytes of ``shared`` memory.
    """
    ways = sorted(way for way in _large(itemsize, words) if _fits(itemsize, way[1], way[2], shared))
    if ways:
        _, name, each = ways[0]
        return ChosenTile(TILES[itemsize][name], each, not each and _transposed(itemsize, words))
    small = _small(itemsize, words)
    return ChosenTile(TILES[itemsize][small if _fits(itemsize, small, 0, shared) else "small"], 0, False)


def _fits(itemsize: int, name: str, each: int, shared: int) -> bool:
    return TILES[itemsize][name].shared(itemsize, totals=not each) <= shared


def _large(itemsize: int, words: Words) -> Iterator[tuple[float, str, int]]:
    """What each large tile takes, its name, and how many blocks of terms a thread block has; 0 for all of them."""
    batch, m, n, k = words[: at.K + 1]
    blocks = max(blocks_of(k, BLOCK), 1)
    sums = batch * m * n * blocks
    fold = sums * FOLD / PROCESSORS + LAUNCH
    for name in SPEED.keys() & TILES[itemsize].keys():
        count = _count(TILES[itemsize][name], words)
        if count >= ENOUGH:
            yield _time(itemsize, name, count, k), name, 0
        each = 1
        while each < blocks and sums * itemsize <= SUMS_BYTES:
            if (parts := count * blocks_of(blocks, each)) >= ENOUGH_SPLIT:
                yield _time(itemsize, name, parts, each * BLOCK) + fold, name, each
            each *= 2


def _count(tile: Tile, words: Words) -> int:
    batch, m, n = words[: at.N + 1]
    return batch * blocks_of(m, tile.bm) * blocks_of(n, tile.bn)


def _time(itemsize: int, name: str, count: int, terms: int) -> float:
    """The time of so many thread blocks of so many terms, in fma of a multiprocessor that is busy."""
    tile, speed = TILES[itemsize][name], SPEED[name]
    whole, rest = divmod(blocks_of(count, PROCESSORS), tile.blocks)

    def wave(beside: int) -> float:
        """Thread blocks beside each other on a multiprocessor, which is busy if there are enough outputs."""
        outputs = beside * tile.bm * tile.bn
        under_way = outputs * itemsize // 4
        busy = 0.72 if under_way < 1 << 14 else 0.92 if under_way < 3 << 13 else 1.0
        return outputs * (terms + START / (1 + beside)) / (speed * busy)

    return whole * wave(tile.blocks) + wave(rest)


def _transposed(itemsize: int, words: Words) -> bool:
    """Whether the second operand is transposed before, since its terms are neighbours."""
    batch, m, n, k = words[: at.K + 1]
    along_k = words[at.B_ROW] == itemsize and words[at.B_COLUMN] != itemsize
    fits = batch == 1 and n % (VECTOR_BYTES // itemsize) == 0 and n * k * itemsize <= COPIED_BYTES
    return along_k and fits and m >= COPIED_ROWS and m * n * k >= COPIED_WORK


def _small(itemsize: int, words: Words) -> str:
    tiles, blocks = TILES[itemsize], blocks_of(words[at.K], BLOCK)
    few = "few" if blocks <= 1 else "few4"
    if few in tiles and words[at.K] > BLOCK // 2 and blocks != 2 and _count(tiles["slices8"], words) <= PROCESSORS // 2:
        return few
    if blocks <= 1:
        return "small" if _count(tiles["small"], words) >= ENOUGH else "slices8"
    if _count(tiles["slices"], words) * 2 >= PROCESSORS:
        return "slices"
    return "slices16" if blocks > 2 and "slices16" in tiles else "slices8"

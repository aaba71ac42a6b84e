"""Matrix products on CUDA devices: the tile of a product, chosen from its words, and the launches of ``gemm``."""

from typing import Any, NamedTuple

import numpy as np

from ...numerics.cuda.tiles import BLOCK, K_FAST, PROCESSORS, TILES, VECTOR_BYTES, X_FAST, X_VECTOR, Tile
from ...numerics.cuda.written import REALS, SCRATCH, Form, Launch, Triple, Words, blocks_of, written
from . import kernels_product as at

SOURCE = "tape/ops/linear/products.cu"

COPIED_BYTES = 1 << 28
"""The largest operand that is transposed before a product."""

COPIED_OUTPUTS = 1 << 14
"""Outputs of a tile from which it is worth it."""


class ChosenTile(NamedTuple):
    """How a product is computed: its tile, blocks of terms of a thread block if they are split, transposed b."""

    tile: Tile
    each: int
    transposed: bool


def chosen(itemsize: int, words: Words) -> ChosenTile:
    """The tile for a product: the largest one of which there are enough for a device."""
    batch, m, n, k = words[: at.K + 1]
    tiles, blocks = TILES[itemsize], max(blocks_of(k, BLOCK), 1)

    def count(name: str) -> int:
        return batch * blocks_of(m, tiles[name].bm) * blocks_of(n, tiles[name].bn)

    def whole(name: str) -> ChosenTile:
        tile = tiles[name]
        along_k = words[at.B_ROW] == itemsize and words[at.B_COLUMN] != itemsize
        fits = batch == 1 and n % (VECTOR_BYTES // itemsize) == 0 and n * k * itemsize <= COPIED_BYTES
        return ChosenTile(tile, 0, tile.bm * tile.bn >= COPIED_OUTPUTS and along_k and fits)

    enough = PROCESSORS * 7 // 8
    if "wide" in tiles and count("wide") >= enough and blocks > 2:
        return whole("wide")
    for name in ("tall", "flat"):
        if name in tiles and count(name) >= enough:
            return whole(name)
    if blocks == 1:
        return whole("small" if count("small") >= PROCESSORS else "slices8")
    if count("split") * blocks >= PROCESSORS * 3 // 2:
        return ChosenTile(tiles["split"], max(count("split") * blocks // (8 * PROCESSORS), 1), False)
    if count("slices") * 2 >= PROCESSORS:
        return whole("slices")
    return whole("slices16" if blocks > 2 and "slices16" in tiles else "slices8")


def _mode(itemsize: int, extent: int, x: int, others: tuple[int, ...]) -> int:
    """How an operand is copied: ``x`` is its stride along the extent, in elements; ``others`` the remaining ones."""
    vector = VECTOR_BYTES // itemsize
    if x != 1:
        return K_FAST
    return X_VECTOR if extent % vector == 0 and all(s % vector == 0 for s in others) else X_FAST


def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
    """The launches of a product."""
    size, (batch, m, n) = dtype.itemsize, words[: at.N + 1]
    if batch * m * n == 0:
        return ()
    return launches_of(size, words, chosen(size, words))


def launches_of(size: int, words: Words, how: ChosenTile) -> tuple[Launch, ...]:
    """The launches of a product that is computed in a given way."""
    tile, each, transposed = how
    batch, m, n, k = words[: at.K + 1]
    own = [w // size if at.A_GROUP <= i <= at.B_COLUMN else w for i, w in enumerate(words[: at.MASK + 1])]
    real = (("REAL", REALS[size]),)
    pointers, before = [*_pointers(words), SCRATCH], []
    if transposed:
        squares = (blocks_of(k, 32) * blocks_of(n, 32), 1, 1)
        sizes = (n, k, own[at.B_COLUMN])
        before = [Launch(SOURCE, "transpose", real, squares, (256, 1, 1), 32 * 33 * size, (SCRATCH, at.B), sizes)]
        own[at.B_ROW], own[at.B_COLUMN], pointers[at.B] = n, 1, SCRATCH
    a = _mode(size, m, own[at.A_ROW], (own[at.A_COLUMN], own[at.A_GROUP], own[at.A_MATRIX]))
    b = _mode(size, n, own[at.B_COLUMN], (own[at.B_ROW], own[at.B_GROUP], own[at.B_MATRIX]))
    split, blocks = each > 0, blocks_of(k, BLOCK)
    defines = (*tile.defines(size), ("A_MODE", a), ("B_MODE", b), ("SPLIT", int(split)))
    grid: Triple = (batch * blocks_of(m, tile.bm) * blocks_of(n, tile.bn), 1, blocks_of(blocks, each) if split else 1)
    shared = tile.shared(size, totals=not split)
    main = Launch(SOURCE, "gemm", defines, grid, (tile.threads, 1, 1), shared, tuple(pointers), (*own, each))
    if not split:
        return (*before, main)
    each_output = (blocks_of(batch * m * n, 256), 1, 1)
    return (main, Launch(SOURCE, "fold", real, each_output, (256, 1, 1), 0, tuple(pointers), (*own, blocks)))


def _pointers(words: Words) -> tuple[int, ...]:
    """Positions of out, a, b, bias and mask in the table; what is absent stands as the output."""
    bias, mask = words[at.BIAS], words[at.MASK]
    return (
        at.OUT,
        at.A,
        at.B,
        at.FIRST_OPTIONAL if bias else at.OUT,
        at.FIRST_OPTIONAL + bias if mask else at.OUT,
    )


def scratch(dtype: np.dtype[Any], words: Words) -> int:
    """Bytes for the sums of blocks of terms, or for the transposed operand."""
    batch, m, n, k = words[: at.K + 1]
    if batch * m * n == 0:
        return 0
    _, each, transposed = chosen(dtype.itemsize, words)
    if each:
        return batch * m * n * blocks_of(k, BLOCK) * dtype.itemsize
    return n * k * dtype.itemsize if transposed else 0


written["gemm"] = Form(launches, scratch)

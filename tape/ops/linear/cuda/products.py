"""Matrix products on CUDA devices: the launches of ``gemm``."""

from functools import partial
from typing import Any

import numpy as np

from ....numerics.cuda.tiles import BLOCK, K_FAST, VECTOR_BYTES, X_FAST, X_VECTOR
from ....numerics.cuda.written import (
    NEWEST_BYTES,
    OLDER_BYTES,
    REALS,
    SCRATCH,
    CudaForm,
    Launch,
    Triple,
    Words,
    blocks_of,
    written,
)
from ..kernels import product as at
from .choice import ChosenTile, chosen

SOURCE = "tape/ops/linear/cuda/products.cu"
STRIDES = {*range(at.A_GROUP, at.B_COLUMN + 1), at.ADDED}
"""Words that are bytes from element to element, and numbers of elements in a launch."""


def _mode(itemsize: int, extent: int, x: int, others: tuple[int, ...]) -> int:
    """How an operand is copied: ``x`` is its stride along the extent, in elements; ``others`` the remaining ones."""
    vector = VECTOR_BYTES // itemsize
    if x != 1:
        return K_FAST
    return X_VECTOR if extent % vector == 0 and all(s % vector == 0 for s in others) else X_FAST


def launches(dtype: np.dtype[Any], words: Words, shared: int = NEWEST_BYTES) -> tuple[Launch, ...]:
    """The launches of a product, whose blocks have so many bytes of ``shared`` memory."""
    size, (batch, m, n) = dtype.itemsize, words[: at.N + 1]
    if batch * m * n == 0:
        return ()
    return launches_of(size, words, chosen(size, words, shared))


def launches_of(size: int, words: Words, how: ChosenTile) -> tuple[Launch, ...]:
    """The launches of a product that is computed in a given way."""
    tile, each, transposed = how
    batch, m, n, k = words[: at.K + 1]
    own = [w // size if i in STRIDES else w for i, w in enumerate(words[: at.PACKED])]
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
    """Positions of out, a, b, bias, mask and addend in the table; what is absent stands as the output."""
    bias, mask = words[at.BIAS], words[at.MASK]
    return (
        at.OUT,
        at.A,
        at.B,
        at.FIRST_OPTIONAL if bias else at.OUT,
        at.FIRST_OPTIONAL + bias if mask else at.OUT,
        at.FIRST_OPTIONAL + bias + mask if words[at.ADDED] else at.OUT,
    )


def scratch(dtype: np.dtype[Any], words: Words, shared: int = NEWEST_BYTES) -> int:
    """Bytes for the sums of blocks of terms, or for the transposed operand."""
    batch, m, n, k = words[: at.K + 1]
    if batch * m * n == 0:
        return 0
    _, each, transposed = chosen(dtype.itemsize, words, shared)
    if each:
        return batch * m * n * blocks_of(k, BLOCK) * dtype.itemsize
    return n * k * dtype.itemsize if transposed else 0


OLDER = CudaForm(partial(launches, shared=OLDER_BYTES), partial(scratch, shared=OLDER_BYTES))

written["gemm"] = CudaForm(launches, scratch, OLDER)

"""Launches of kernels that sum down columns, as ``columns.cuh`` has them."""

from .tiles import BLOCK
from .written import REALS, SCRATCH, Launch, Triple, Words, blocks_of

WIDTH, THREADS = 32, 256
"""Columns of a thread block, and its threads."""

SUMS = 6
"""The position of the sums of blocks of rows."""

Sizes = tuple[int, int, int]
"""Outer matrices, their rows, their columns."""


def column_launch(
    source: str, entry: str, itemsize: int, sizes: Sizes, arrays: int, own: Words, layers: int = 1
) -> Launch:
    """One launch of thread blocks for each 32 columns and each block of rows."""
    outer, rows, columns = sizes
    grid = (outer * blocks_of(columns, WIDTH) * max(1, blocks_of(rows, BLOCK)), 1, layers)
    shared = WIDTH * min(rows, BLOCK) * itemsize
    return _launch(source, entry, itemsize, sizes, grid, shared, arrays, own)


def column_launches(
    source: str, entry: str, itemsize: int, sizes: Sizes, arrays: int, own: Words
) -> tuple[Launch, ...]:
    """The launches of sums down the columns of ``outer`` matrices of ``rows``; none for no columns.

    ``arrays`` are those of the table; ``own`` are words behind the sizes.
    """
    outer, rows, columns = sizes
    if outer * columns == 0:
        return ()
    chains = column_launch(source, entry, itemsize, sizes, arrays, own)
    if rows <= BLOCK:
        return (chains,)
    grid = (blocks_of(outer * columns, THREADS), 1, 1)
    return chains, _launch(source, "add_chains", itemsize, sizes, grid, 0, arrays, own)


def _launch(
    source: str, entry: str, itemsize: int, sizes: Sizes, grid: Triple, shared: int, arrays: int, own: Words
) -> Launch:
    outer, rows, columns = sizes
    pointers = (*range(arrays), *(0,) * (SUMS - arrays), SCRATCH)
    words = (rows, columns, outer, *own)
    return Launch(source, entry, (("REAL", REALS[itemsize]),), grid, (THREADS, 1, 1), shared, pointers, words)


def sums_bytes(itemsize: int, sizes: Sizes, kinds: int = 1) -> int:
    """Bytes of the sums of blocks of rows."""
    outer, rows, columns = sizes
    return kinds * outer * columns * blocks_of(rows, BLOCK) * itemsize

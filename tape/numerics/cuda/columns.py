"""Launches of kernels that sum down columns, as ``columns.cuh`` has them."""

from .tiles import BLOCK
from .written import REALS, Launch, Words, blocks_of

WIDTH = 32
"""Columns of a thread block."""

WARPS = 16
"""Blocks of rows that are summed side by side, where there are more than one."""


def column_launches(
    source: str, entry: str, itemsize: int, sizes: tuple[int, int, int], pointers: Words, words: Words
) -> tuple[Launch, ...]:
    """One launch for the columns of ``outer`` matrices of ``rows``; none for no columns."""
    outer, rows, columns = sizes
    if outer * columns == 0:
        return ()
    warps = WARPS if rows > BLOCK else 1
    grid, block = (outer * blocks_of(columns, WIDTH), 1, 1), (warps * WIDTH, 1, 1)
    defines = (("REAL", REALS[itemsize]), ("WARPS", warps))
    return (Launch(source, entry, defines, grid, block, warps * WIDTH * itemsize, pointers, words),)

"""Launches of kernels that give each row a team of threads, as ``rows.cuh`` has them."""

from .written import REALS, Launch, Words, blocks_of

LANES = 16

ROW_BLOCK = 4096
"""Elements of a row whose sum is one sum of the contract."""

GROUPS = 32
"""Groups of sixteen threads for a row of more than a block."""

ROWS_AT_ONCE = 8
"""Rows of a thread block where each has one group."""


def row_launches(
    source: str, entry: str, itemsize: int, rows: int, n: int, pointers: Words, words: Words
) -> tuple[Launch, ...]:
    """One launch for rows of ``n`` elements; none for no rows."""
    groups = GROUPS if n > ROW_BLOCK else 1
    together = ROWS_AT_ONCE if groups == 1 else 1
    if rows == 0:
        return ()
    grid, block = (blocks_of(rows, together), 1, 1), (LANES * groups * together, 1, 1)
    defines = (("REAL", REALS[itemsize]), ("GROUPS", groups))
    return (Launch(source, entry, defines, grid, block, groups * itemsize, pointers, words),)

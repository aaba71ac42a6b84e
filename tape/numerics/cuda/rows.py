"""Launches of kernels that give each row a team of threads, as ``rows.cuh`` has them."""

from .written import REALS, Launch, Words, blocks_of

ROW_BLOCK = 4096
"""Elements of a row whose sum is one sum of the contract."""

LANES, ROWS_AT_ONCE = 16, 8
"""Threads of a row where eight rows are a thread block."""

MANY = 1024
"""So many rows, of at most so many elements, keep a device busy by sixteen threads each."""

SHORT = 64
"""Elements of a row for which more threads have nothing to do."""

ALONE, TOGETHER = 256, 512
"""Threads of a row that is a thread block, whose blocks are summed one at a time, or several."""

AT_A_TIME = {4: 3, 8: 1}
"""Blocks of a longer row that are summed at a time, by bytes of an element: 48 KiB of shared memory are everywhere."""

BEFORE_STAGED = 32
"""Elements of shared memory before those that are added."""


def groups_of(itemsize: int, rows: int, n: int) -> int:
    """How a row of ``n`` elements is shared: 0 by sixteen threads, else by a thread block, so many blocks at a time."""
    if n <= SHORT or (n <= MANY <= rows):
        return 0
    return 1 if n <= ROW_BLOCK else AT_A_TIME[itemsize]


def row_launches(
    source: str, entry: str, itemsize: int, rows: int, n: int, pointers: Words, words: Words
) -> tuple[Launch, ...]:
    """One launch for rows of ``n`` elements; none for no rows."""
    groups = groups_of(itemsize, rows, n)
    if groups:
        return block_launches(source, entry, itemsize, (rows, 1), n, pointers, words, groups)
    if rows == 0:
        return ()
    grid, block = (blocks_of(rows, ROWS_AT_ONCE), 1, 1), (LANES * ROWS_AT_ONCE, 1, 1)
    return (Launch(source, entry, (("REAL", REALS[itemsize]), ("GROUPS", 0)), grid, block, 0, pointers, words),)


def block_launches(
    source: str,
    entry: str,
    itemsize: int,
    teams: tuple[int, int],
    n: int,
    pointers: Words,
    words: Words,
    groups: int = 1,
) -> tuple[Launch, ...]:
    """One launch of thread blocks that each sum ``n`` elements, for ``teams`` along x and z; none for none."""
    if 0 in teams:
        return ()
    defines = (("REAL", REALS[itemsize]), ("GROUPS", groups))
    shared = (BEFORE_STAGED + min(n, groups * ROW_BLOCK)) * itemsize
    block = ALONE if groups == 1 else TOGETHER
    return (Launch(source, entry, defines, (teams[0], 1, teams[1]), (block, 1, 1), shared, pointers, words),)

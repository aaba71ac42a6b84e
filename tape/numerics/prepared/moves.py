"""Bytes that are copied in a program: each to a place of its own, or one behind the other to the end of a buffer."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....base.arrays import Array
from ..engine.intrinsics import move, put_word, word
from ..engine.kernel import kernel
from ..engine.launch import Words
from .places import BytePlace, address_of
from .prepared_calls import Row, row

COUNT, MOVED, COUNTERS, COUNTED = range(4)
"""Of `move_bytes`: how many moves, and where they stand; how many counters, and where these
stand."""
MOVE = 3
TARGET, SOURCE, NBYTES = range(MOVE)
COUNTER = 2
COUNT_AT, BY = range(COUNTER)

PIECES, TAKEN, BUFFER, USED = range(4)
"""Of `append_bytes`: how many pieces, and where they stand, as moves without a target; addresses of a buffer, and of
the word that says how much of it is used."""


@kernel
def move_bytes(table, ints, part, parts):
    """Copy bytes to their places, then raise counters."""
    for k in range(word(ints, COUNT)):
        item = word(ints, MOVED) + 8 * MOVE * k
        move(word(item, TARGET), word(word(item, SOURCE), 0), word(item, NBYTES))
    for k in range(word(ints, COUNTERS)):
        item = word(ints, COUNTED) + 8 * COUNTER * k
        counter = word(item, COUNT_AT)
        put_word(counter, 0, word(counter, 0) + word(item, BY))
    return 0


@kernel
def append_bytes(table, ints, part, parts):
    """Copy bytes one behind the other to the end of a buffer."""
    used = word(word(ints, USED), 0)
    for k in range(word(ints, PIECES)):
        item = word(ints, TAKEN) + 8 * MOVE * k
        move(word(ints, BUFFER) + used, word(word(item, SOURCE), 0), word(item, NBYTES))
        used += word(item, NBYTES)
    put_word(word(ints, USED), 0, used)
    return 0


class Move(NamedTuple):
    """The first ``out.nbytes`` bytes of a place, copied over those of ``out``."""

    out: Array
    source: BytePlace


class Counter(NamedTuple):
    """An int64 that is raised at each run; the address of what is read next, too."""

    counted: Array
    by: int = 1


class Moves:
    """Copies in turn; behind them counters are raised.

    >>> from .places import place_of
    >>> from .prepared_calls import PreparedCalls
    >>> x, out, count = np.arange(3), np.zeros(2, np.int64), np.array([7])
    >>> tail = x[1:]
    >>> PreparedCalls(Moves([Move(out, place_of(tail))], [Counter(count)])).run(), out, count
    (0, array([1, 2]), array([8]))
    """

    def __init__(self, moves: Sequence[Move], counters: Sequence[Counter] = ()) -> None:
        counted = np.array([(address_of(c.counted), c.by) for c in counters], np.int64)
        items = [(address_of(out), source.address, out.nbytes) for out, source in moves]
        table = np.array(items, np.int64).reshape(-1, MOVE)
        self._kept = (moves, counters, counted, table)
        self._words = Words(len(table), address_of(table), len(counted), address_of(counted))

    def rows(self) -> list[Row]:
        """The call that makes them."""
        return [row(move_bytes, self._words)]


class Appended:
    """Pieces, each a place and how many bytes, copied behind the ``used[0]`` bytes of a buffer that has room for them.

    >>> from .places import place_of
    >>> from .prepared_calls import PreparedCalls
    >>> buffer, used = np.zeros(5, np.uint8), np.array([1])
    >>> append = PreparedCalls(Appended([(place_of(np.array([7, 8], np.uint8)), 2)], buffer, used))
    >>> append.run(), append.run(), buffer, used
    (0, 0, array([0, 7, 8, 7, 8], dtype=uint8), array([5]))
    """

    def __init__(self, pieces: Sequence[tuple[BytePlace, int]], buffer: Array, used: Array) -> None:
        table = np.array([(0, place.address, nbytes) for place, nbytes in pieces], np.int64).reshape(-1, MOVE)
        self._kept = (pieces, buffer, used, table)
        self._words = Words(len(table), address_of(table), address_of(buffer), address_of(used))

    def rows(self) -> list[Row]:
        """The call that appends them."""
        return [row(append_bytes, self._words)]

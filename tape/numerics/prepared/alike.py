"""Bytes that must be equal, as part of a program."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....base.arrays import Array
from ..engine.intrinsics import move, put_word, stack_words, word
from ..engine.kernel import kernel
from ..engine.launch import Words
from .places import address_of
from .prepared_calls import Row, row

COUNT, PAIRS = range(2)
"""How many pairs there are, and where they stand."""
PAIR = 3
ONE, OTHER, NBYTES = range(PAIR)


@kernel
def same_bytes(table, ints, part, parts):
    """Hold pairs of places against each other; the status is 1 + the first pair that differs."""
    rest = stack_words(2)
    for k in range(word(ints, COUNT)):
        item = word(ints, PAIRS) + 8 * PAIR * k
        one, other, nbytes = word(item, ONE), word(item, OTHER), word(item, NBYTES)
        whole, tail = nbytes // 8, nbytes & 7
        differs = 0
        for i in range(whole):
            differs |= word(one, i) ^ word(other, i)
        put_word(rest, 0, 0)
        put_word(rest, 1, 0)
        move(rest, one + 8 * whole, tail)
        move(rest + 8, other + 8 * whole, tail)
        if differs | (word(rest, 0) ^ word(rest, 1)):
            return k + 1
    return 0


class BytePair(NamedTuple):
    """Two arrays of as many bytes."""

    one: Array
    other: Array


class Alike:
    """Pairs that hold the same bytes; the status is 1 + the first that does not.

    >>> from .prepared_calls import PreparedCalls
    >>> x, y = np.arange(11, dtype=np.uint8), np.arange(11, dtype=np.uint8)
    >>> program = PreparedCalls(Alike([BytePair(x[:8], y[:8]), BytePair(x, y)]))
    >>> program.run()
    0
    >>> y[10] = 0
    >>> program.run()
    2
    """

    def __init__(self, pairs: Sequence[BytePair]) -> None:
        items = [(address_of(one), address_of(other), one.nbytes) for one, other in pairs]
        table = np.array(items, np.int64).reshape(-1, PAIR)
        self._kept = (pairs, table)
        self._words = Words(len(table), address_of(table))

    def rows(self) -> list[Row]:
        """The call that holds them against each other."""
        return [row(same_bytes, self._words)]

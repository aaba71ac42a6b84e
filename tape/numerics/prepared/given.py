"""Arrays that a program is given anew before each run: looked at in compiled code, and used where they lie."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base.arrays import Array
from ..engine.intrinsics import DATA_FIELD, put_word, word
from ..engine.kernel import kernel
from ..engine.launch import Words
from ..engine.machine import FEED, fits
from .places import BytePlace, address_of
from .prepared_calls import Row, row

FIRST_ITEM = tuple.__basicsize__
"""Where in a tuple its items begin."""

COUNT, GIVEN, FEEDS, FOUND, KIND = range(5)
"""How many arrays there are; addresses of the word with the ``id`` of their tuple, of what is known of each, and of the
words that their elements' addresses go to; the ``id`` of the type of arrays."""


@kernel
def take_given(table, ints, part, parts):
    """Note where the elements of arrays lie; the status is 1 + the first that is not what it should be."""
    items = word(word(ints, GIVEN), 0) + FIRST_ITEM
    for k in range(word(ints, COUNT)):
        array = word(items, k)
        if not fits(array, word(ints, KIND), word(ints, FEEDS) + 8 * FEED * k):
            return k + 1
        put_word(word(ints, FOUND), k, word(array + DATA_FIELD, 0))
    return 0


class Given:
    """Arrays of these dtypes and shapes, in row-major order; a run that is given others ends before anything is done.

    >>> from .prepared_calls import PreparedCalls
    >>> given = Given([(np.dtype(np.int64), (2,)), (np.dtype(np.float32), ())])
    >>> program = PreparedCalls(given)
    >>> def run(*arrays):
    ...     given.take(arrays)
    ...     return program.run()
    >>> run(np.zeros(2, np.int64), np.zeros((), np.float32)), run(np.zeros(2, np.int64), 1.5), run(np.zeros(2), 1.5)
    (0, 2, 1)
    """

    def __init__(self, kinds: Sequence[tuple[np.dtype[Any], tuple[int, ...]]]) -> None:
        self._dtypes = [dtype for dtype, _ in kinds]
        self._shapes = [np.array(shape, np.int64) for _, shape in kinds]
        feeds = [
            (0, 0, len(sizes), address_of(sizes), id(d)) for d, sizes in zip(self._dtypes, self._shapes, strict=True)
        ]
        self._feeds = np.array(feeds, np.int64).reshape(-1, FEED)
        self._found: Array = np.zeros(len(kinds), np.int64)
        self._tuple = np.zeros(1, np.int64)
        self._told = self._tuple.data
        places = (address_of(self._tuple), address_of(self._feeds), address_of(self._found))
        self._words = Words(len(kinds), *places, id(np.ndarray))

    def take(self, arrays: tuple[Any, ...]) -> None:
        """Have the next run use these, as many as there are kinds; the caller keeps the tuple until then."""
        self._told[0] = id(arrays)

    def place(self, number: int) -> BytePlace:
        """Where the elements of one of them lie."""
        return BytePlace(address_of(self._found) + 8 * number, self)

    def rows(self) -> list[Row]:
        """The call that looks at them."""
        return [row(take_given, self._words)]

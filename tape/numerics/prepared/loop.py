"""Rows that are run again and again, on arrays that move on by a row at each turn."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....base.arrays import Array
from ..engine.intrinsics import entry, move, put_word, word
from ..engine.kernel import kernel, vector
from ..engine.launch import Words
from ..engine.machine import KERNEL, PARTS, run_rows
from .interruption import INTERRUPTED, LOOKING, came
from .places import address_of

(
    STEPS,
    FIRST,
    BY,
    ROWS,
    COUNT,
    POINTERS,
    POINTED,
    MOVING,
    FIXED,
    BEFORE,
    BEFORE_COUNT,
    AFTER,
    AFTER_COUNT,
    FAULT,
    TRUTH,
    TRUTH_OFFSET,
    EVERY,
    LOOKS,
) = range(18)
"""How many turns there are, the place of the first, and by how much it goes on; rows, and how many; the pointers of
their tables; what each is, first those that move on, and how many these are, and how many do not; copies before the
first turn, and after each; where a fault is told; the truth that lets another turn begin: in which array, or -1 for
none, and where there; after how many turns it looks for Ctrl-C, and with what."""

POINTER = 4
SLOT, BASE, OFFSET, STRIDE = range(POINTER)
"""Of a pointer: its number, which array of the loop it points into, and where at place 0, and by how much it moves."""

COPY = 5
TO, TO_OFFSET, FROM, FROM_OFFSET, NBYTES = range(COPY)


@njit(inline="always")
def _copy(table, copies, count):
    for k in range(count):
        item = copies + 8 * COPY * k
        target = entry(table, word(item, TO)) + word(item, TO_OFFSET)
        move(target, entry(table, word(item, FROM)) + word(item, FROM_OFFSET), word(item, NBYTES))


@njit(inline="always")
def _point(table, ints, first, count, place):
    for k in range(first, first + count):
        item = word(ints, POINTED) + 8 * POINTER * k
        at = entry(table, word(item, BASE)) + word(item, OFFSET) + place * word(item, STRIDE)
        put_word(word(ints, POINTERS), word(item, SLOT), at)


@njit(inline="always")
def run_turns(table, ints, control):
    """Run rows again and again; the status is that of the first row that fails, or `INTERRUPTED`."""
    place, truth, fault = word(ints, FIRST), word(ints, TRUTH), word(ints, FAULT)
    _copy(table, word(ints, BEFORE), word(ints, BEFORE_COUNT))
    _point(table, ints, word(ints, MOVING), word(ints, FIXED), 0)
    ahead = word(ints, EVERY)
    for _ in range(word(ints, STEPS)):
        if truth >= 0 and vector(table, truth, word(ints, TRUTH_OFFSET), 1)[0] == 0:
            break
        _point(table, ints, 0, word(ints, MOVING), place)
        if run_rows(word(ints, ROWS), word(ints, COUNT), control, fault) != 0:
            put_word(fault, 2, place)
            return word(fault, 0)
        _copy(table, word(ints, AFTER), word(ints, AFTER_COUNT))
        place += word(ints, BY)
        ahead -= 1
        if ahead == 0:
            ahead = word(ints, EVERY)
            if came(word(ints, LOOKS)):
                return INTERRUPTED
    return 0


@kernel
def loop(table, ints, part, parts):
    """`run_turns`: ``part`` is the machine's control. The type of the table is that of truths."""
    return run_turns(table, ints, part)


class LoopPointer(NamedTuple):
    """A pointer of a table: into which array of the loop it points, where at place 0, and by how much it moves on."""

    base: int
    offset: int
    stride: int = 0


class LoopCopy(NamedTuple):
    """Bytes that are copied from one place in the loop's arrays to another."""

    to: LoopPointer
    source: LoopPointer
    nbytes: int


class NestedWords(Words, ABC):
    """Words of a call that makes others."""

    __slots__ = ()

    @property
    @abstractmethod
    def content(self) -> list[Any]:
        """What they say apart from where they lie: equal calls have the same."""


class LoopWords(NestedWords):
    """The words of `loop`, and all that they point to.

    Args:
        places: of the turns, in their order.
        rows: of the machine; their tables point into ``pointers``.
        pointers: the memory of the tables, and what each of them is in ``pointed``.
        before: copies before the first turn.
        after: copies after each.
        inner: the words of the rows.
        truth: what lets another turn begin; None where all do.
        every: after how many turns it looks for Ctrl-C.
    """

    __slots__ = ("_copies", "_fault", "_pointed", "_rows", "inner", "places", "pointers")

    def __init__(
        self,
        places: range,
        rows: Array,
        pointers: Array,
        pointed: Sequence[LoopPointer],
        before: Sequence[LoopCopy],
        after: Sequence[LoopCopy],
        inner: Sequence[Words],
        truth: LoopPointer | None,
        every: int,
    ) -> None:
        numbered = sorted(enumerate(pointed), key=lambda item: not item[1].stride)
        table = np.array([(slot, *pointer) for slot, pointer in numbered], np.int64).reshape(-1, POINTER)
        moving = sum(bool(pointer.stride) for pointer in pointed)
        copies = [_table(each) for each in (before, after)]
        fault = np.zeros(3, np.int64)
        self.places, self._rows, self._pointed, self._copies = places, rows, table, copies
        self.inner, self.pointers, self._fault = inner, pointers, fault
        super().__init__(
            len(places),
            places.start,
            places.step,
            address_of(rows),
            len(rows),
            address_of(pointers),
            address_of(table),
            moving,
            len(pointed) - moving,
            address_of(copies[0]),
            len(before),
            address_of(copies[1]),
            len(after),
            address_of(fault),
            -1 if truth is None else truth.base,
            0 if truth is None else truth.offset,
            every,
            LOOKING,
        )

    @property
    def failed(self) -> tuple[int, int, int]:
        """The status that ended the last run early, its row, and the number of the turn."""
        status, row, place = self._fault.tolist()
        return status, row, self.places.index(place)

    @property
    def content(self) -> list[Any]:
        """As that of all such words."""
        words = [w.content if isinstance(w, NestedWords) else w.values.tolist() for w in self.inner]
        rows, turns = self._rows[:, [KERNEL, PARTS]].tolist(), self.values[TRUTH:LOOKS].tolist()
        return [self.places, rows, self._pointed.tolist(), [each.tolist() for each in self._copies], turns, words]


def _table(copies: Sequence[LoopCopy]) -> Array:
    made = [(c.to.base, c.to.offset, c.source.base, c.source.offset, c.nbytes) for c in copies]
    return np.array(made, np.int64).reshape(-1, COPY)

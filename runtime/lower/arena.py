"""Placing values in one arena: two values share memory only if one is dead before the other is born.

The intervals come from the order of the ops; a first-fit search over the free blocks by size keeps the
arena near the largest sum of what is alive at once.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import NamedTuple

from ..step.memory import aligned


class ArenaBlock(NamedTuple):
    """A piece of the arena: ``owner`` lives in it from op ``first`` to op ``last``, both included."""

    owner: int
    offset: int
    nbytes: int
    first: int
    last: int


class _Free:
    """The free blocks below the top of the arena, by size and by both ends."""

    def __init__(self) -> None:
        self.top = 0
        self._by_size: list[tuple[int, int]] = []
        self._begins: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def take(self, nbytes: int) -> int:
        """The offset of the smallest free block that is large enough, else the top."""
        at = bisect_left(self._by_size, (nbytes, -1))
        if at == len(self._by_size):
            offset = self.top
            self.top += nbytes
            return offset
        size, offset = self._by_size[at]
        self._remove(offset, size)
        if size > nbytes:
            self._add(offset + nbytes, size - nbytes)
        return offset

    def give(self, offset: int, nbytes: int) -> None:
        """Free a block, joined with its free neighbours."""
        if offset in self._ends:
            before = self._ends[offset]
            self._remove(before, offset - before)
            offset, nbytes = before, nbytes + offset - before
        if offset + nbytes in self._begins:
            size = self._begins[offset + nbytes]
            self._remove(offset + nbytes, size)
            nbytes += size
        self._add(offset, nbytes)

    def _add(self, offset: int, size: int) -> None:
        insort(self._by_size, (size, offset))
        self._begins[offset], self._ends[offset + size] = size, offset

    def _remove(self, offset: int, size: int) -> None:
        del self._by_size[bisect_left(self._by_size, (size, offset))]
        del self._begins[offset], self._ends[offset + size]


def place(lives: Iterable[tuple[int, int, int, int]]) -> tuple[list[ArenaBlock], int]:
    """Blocks for ``(owner, bytes, first, last)`` given in the order of ``first``, and the bytes of the arena."""
    free, blocks = _Free(), list[ArenaBlock]()
    ending: dict[int, list[ArenaBlock]] = {}
    clock = -1
    for owner, nbytes, first, last in lives:
        while clock < first - 1:
            clock += 1
            for block in ending.pop(clock, ()):
                free.give(block.offset, block.nbytes)
        block = ArenaBlock(owner, free.take(aligned(nbytes)), aligned(nbytes), first, last)
        blocks.append(block)
        ending.setdefault(last, []).append(block)
    return blocks, free.top


def overlaps(blocks: Iterable[ArenaBlock]) -> list[tuple[ArenaBlock, ArenaBlock]]:
    """Pairs of blocks that are alive at one op and share a byte: none, in a right plan.

    Written without regard to how blocks were placed: a sweep over the ops that keeps the living sorted by
    offset and compares each newcomer with its neighbours.
    """
    every = list(blocks)
    events = sorted([(b.first, 1, i) for i, b in enumerate(every)] + [(b.last + 1, 0, i) for i, b in enumerate(every)])
    living: list[tuple[int, int]] = []
    found: list[tuple[ArenaBlock, ArenaBlock]] = []
    for _, born, i in events:
        key = (every[i].offset, i)
        at = bisect_left(living, key)
        if not born:
            del living[at]
            continue
        for _, j in living[max(0, at - 1) : at + 1]:
            a, b = every[j], every[i]
            if a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes:
                found.append((a, b))
        living.insert(at, key)
    return found

"""Which launches wait for which: those that touch the same bytes, unless both read, or both mark."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

READ, WRITE, MARK = range(3)
"""Ways to touch bytes. Reads may happen side by side, and so may marks, which commute; nothing else may."""


class Touch(NamedTuple):
    """Bytes that a launch touches, and how."""

    begin: int
    end: int
    way: int


def in_turn(nodes: Sequence[Any]) -> list[Any]:
    """Nodes of a graph, each waiting for the one before."""
    return [node._replace(after=(i - 1,) if i else ()) for i, node in enumerate(nodes)]


def waits(touches: Sequence[Iterable[Touch]]) -> list[tuple[int, ...]]:
    """For each launch the earlier ones that it must wait for, without those that another of them waits for.

    >>> waits([[Touch(0, 4, WRITE)], [Touch(8, 12, WRITE)], [Touch(0, 4, READ), Touch(8, 12, WRITE)]])
    [(), (), (1, 0)]
    """
    rows = [(*touch, i) for i, own in enumerate(touches) for touch in own]
    begins, ends, ways, owners = (np.array(c, np.int64) for c in zip(*rows, strict=True)) if rows else [np.empty(0)] * 4
    behind: list[int] = []  # as bits: every launch that one waits for, directly or not
    found: list[tuple[int, ...]] = []
    for i, own in enumerate(touches):
        before = int(np.searchsorted(owners, i))
        met: set[int] = set()
        for begin, end, way in own:
            shared = (begins[:before] < end) & (ends[:before] > begin)
            if way != WRITE:
                shared &= ways[:before] != way
            met.update(owners[:before][shared].tolist())
        bits, direct = 0, list[int]()
        for other in sorted(met, reverse=True):
            if not bits >> other & 1:
                direct.append(other)
                bits |= behind[other] | 1 << other
        behind.append(bits)
        found.append(tuple(direct))
    return found

"""The batches of one rank among those that several ranks train on, or measure, together."""

from collections.abc import Container, Iterator
from itertools import islice
from typing import TypeVar

B = TypeVar("B")
"""A batch."""


def of_groups(batches: Iterator[B], together: int, own: Container[int], *, rest: bool = False) -> Iterator[B]:
    """Of every ``together`` batches in turn those at the places ``own``; of fewer at the end only with ``rest``.

    >>> list(of_groups(iter(range(8)), 3, range(1, 3))), list(of_groups(iter(range(8)), 3, range(1, 3), rest=True))
    ([1, 2, 4, 5], [1, 2, 4, 5, 7])
    """
    while group := list(islice(batches, together)):
        if len(group) == together or rest:
            yield from (batch for place, batch in enumerate(group) if place in own)

"""The flat arena of what is trained, cut into shards: which rank holds and updates what."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Array
from ...tape.values.spec import Spec
from ..optim.groups import Groups
from ..step.memory import ALIGNMENT, aligned
from ..step.recipe import Recipe


class Piece(NamedTuple):
    """Consecutive elements of an array, or all of it."""

    name: str
    start: int
    stop: int
    whole: bool

    def of(self, array: Array) -> Array:
        """Its elements in an array of this name: the whole as it is, a part as a row."""
        return array if self.whole else array.reshape(-1)[self.start : self.stop]


@dataclass(frozen=True)
class ArenaArray:
    """Where an array lies in the arena, in bytes, and whether it may be cut."""

    name: str
    spec: Spec
    start: int
    divisible: bool

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return self.spec.size * self.spec.dtype.itemsize

    @property
    def stop(self) -> int:
        """Where the next one lies."""
        return self.start + aligned(self.nbytes)


SEGMENT = 1 << 20
"""Bytes from which a part of the arena is worth an exchange of its own."""

SEGMENTS = 4
"""How many parts are exchanged by themselves at most."""


def in_segments(specs: Mapping[str, Spec]) -> list[dict[str, Spec]]:
    """Neighbouring arrays together, so that each segment has about as many bytes as the others.

    >>> large = Spec((1 << 18,), np.dtype(np.float32))
    >>> [list(segment) for segment in in_segments({"a": large, "b": large, "c": large})]
    [['a'], ['b'], ['c']]
    """
    sizes = {name: aligned(spec.size * spec.dtype.itemsize) for name, spec in specs.items()}
    total, before = sum(sizes.values()), 0
    count = max(1, min(SEGMENTS, total // SEGMENT))
    found: list[dict[str, Spec]] = [{} for _ in range(count)]
    for name, spec in specs.items():
        found[before * count // total if total else 0][name] = spec
        before += sizes[name]
    return [segment for segment in found if segment] or [{}]


class Shards:
    """An arena of arrays side by side, each beginning at a cache line, in one shard for each rank.

    Shards are of about equal size. They begin at cache lines, or, where an array may not be cut, at one of its ends.

    Args:
        specs: shape and dtype of each array, in order.
        divisible: whether an array may be cut inside.
        size: how many ranks there are.
    """

    def __init__(self, specs: Mapping[str, Spec], divisible: Callable[[str], bool], size: int) -> None:
        self.extents: list[ArenaArray] = []
        end = 0
        for name, spec in specs.items():
            self.extents.append(ArenaArray(name, spec, end, divisible(name)))
            end = self.extents[-1].stop
        self.nbytes = end
        self.bounds = [self._cut(rank * end // size // ALIGNMENT * ALIGNMENT) for rank in range(size)] + [end]
        """Where each shard begins, in bytes, and where the last one ends."""

    def _cut(self, place: int) -> int:
        """The place, or the nearer end of an array around it that may not be cut."""
        around = next((e for e in self.extents if e.start < place < e.stop and not e.divisible), None)
        if around is None:
            return place
        return around.start if place - around.start <= around.stop - place else around.stop

    def pieces(self, rank: int) -> list[Piece]:
        """What lies in a shard: of an array consecutive elements, or all of it."""
        low, high = self.bounds[rank], self.bounds[rank + 1]
        return [piece for extent in self.extents if (piece := _piece(extent, low, high)) is not None]

    @property
    def every(self) -> list[Piece]:
        """All arrays, whole."""
        return [Piece(extent.name, 0, extent.spec.size, whole=True) for extent in self.extents]

    def views(self, row: Array, low: int, pieces: Sequence[Piece]) -> dict[str, Array]:
        """The elements of pieces in bytes of the arena that begin at ``low``."""
        extents = {extent.name: extent for extent in self.extents}
        return {piece.name: _view(row, low, piece, extents[piece.name]) for piece in pieces}


def _piece(extent: ArenaArray, low: int, high: int) -> Piece | None:
    item = extent.spec.dtype.itemsize
    start, stop = max(low, extent.start), min(high, extent.stop)
    if start >= stop:
        return None
    first, last = (min(place - extent.start, extent.nbytes) // item for place in (start, stop))
    return Piece(extent.name, first, last, whole=(start, stop) == (extent.start, extent.stop))


def _view(row: Array, low: int, piece: Piece, extent: ArenaArray) -> Array:
    item = extent.spec.dtype.itemsize
    first = extent.start - low
    found = row[first + piece.start * item : first + piece.stop * item].view(extent.spec.dtype)
    return found.reshape(extent.spec.shape) if piece.whole else found


def divisible(groups: Groups, recipe: Recipe) -> Callable[[str], bool]:
    """Which parameters may be cut: those of elementwise rules, unless the norm of each is needed for clipping."""
    if recipe.clip_norm is not None:
        return lambda name: False
    cut = {name for group in groups.groups for name in group.names if group.rule.elementwise}
    return cut.__contains__


def spec_of(array: Array) -> Spec:
    """The shape and dtype of an array."""
    return Spec(array.shape, np.dtype(array.dtype))


def bytes_of(array: Array) -> Array:
    """The memory of a contiguous array as bytes."""
    found: np.ndarray[Any, Any] = array.reshape(-1).view(np.uint8)
    return found

"""What the ranks of a run give one another in a step: sums by shard, small arrays, the optimizer's state."""

from collections.abc import Container, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Array, Arrays
from ...tape.values.spec import Spec
from ..optim.groups import Groups
from ..step.memory import aligned, in_one_block, line_aligned
from ..step.tree import range_of, spans_of
from .exchange import Exchange, Wait
from .fold import fold_means
from .shards import Piece, Shards, bytes_of


class TreeOfRanks:
    """The tree over the micro-batches of a step, of which each rank makes some sums whole and all are folded here."""

    def __init__(self, ranks: Exchange, count: int) -> None:
        self._ranks, self.count = ranks, count
        of_each = [spans_of(count, range_of(count, rank, ranks.size)) for rank in range(ranks.size)]
        self.counts = [len(spans) for spans in of_each]
        """How many sums each rank makes whole."""
        self._stops = [span.stop for spans in of_each for span in spans]

    def fold(self, out: Array, rows: Sequence[Array]) -> None:
        """Write the means over the micro-batches to ``out``, from the sums of all ranks in order: see `fold_means`."""
        fold_means(out, rows, self._stops, self.count)

    def mean(self, own: Sequence[Array]) -> Array:
        """The mean of a number without axes, of which this rank has the sums ``own``; on every rank."""
        every = gathered(self._ranks, np.array(own), self.counts).reshape(-1, 1)
        out: Array = np.empty_like(every[0])
        self.fold(out, list(every))
        mean: Array = out.reshape(())
        return mean


class Neighbours(NamedTuple):
    """Neighbouring arrays of one dtype in a shard: where they lie there, in bytes."""

    dtype: np.dtype[Any]
    start: int
    stop: int


class ShardedMeans:
    """The means over all micro-batches of what lies in an arena, of which each rank gets those of its shard."""

    def __init__(self, ranks: Exchange, shards: Shards, tree: TreeOfRanks) -> None:
        self._ranks, self._shards, self._tree = ranks, shards, tree
        self._low, self._high = shards.bounds[ranks.rank : ranks.rank + 2]
        self._pieces = shards.pieces(ranks.rank)
        self._rows = [line_aligned(shards.nbytes) for _ in range(tree.counts[ranks.rank])]
        for row in self._rows:
            row[:] = 0
        self.rows = [shards.views(row, 0, shards.every) for row in self._rows]
        """The arrays of each row by name, where sums may be put before `begin`."""
        self._stretches = _stretches(shards, self._low, self._high)
        self._shard = self._rows[0][self._low : self._high]
        self._of_shard = shards.views(self._shard, self._low, self._pieces)
        self._wait: Wait = tuple

    def begin(self, partials: Mapping[str, Sequence[Array]]) -> None:
        """Begin to give all ranks their shards of the sums, which are copied unless they are these rows."""
        for k, row in enumerate(self.rows):
            for name, array in row.items():
                if name not in partials:
                    array[...] = 0
                elif partials[name][k] is not array:
                    array[...] = partials[name][k]
        self._wait = self._ranks.scatter(self._rows, self._shards.bounds, self._tree.counts)

    def means(self) -> dict[str, Array]:
        """The means of this rank's pieces, from the sums of all ranks: views that are valid until the next `begin`."""
        rows = self._wait()
        for dtype, start, stop in self._stretches:
            self._tree.fold(self._shard[start:stop].view(dtype), [row[start:stop].view(dtype) for row in rows])
        return self._of_shard

    def collected(self, own: Arrays) -> dict[str, Array]:
        """On rank 0 the whole arrays of which each rank gives its pieces ``own``; elsewhere none."""
        for name, array in own.items():
            self._of_shard[name][...] = array
        whole = self._ranks.collect(self._shard, self._shards.bounds)
        return {} if self._ranks.rank else self._shards.views(whole, 0, self._shards.every)


class Arena:
    """All that is trained, in segments that are exchanged each by itself; of each every rank has a shard.

    So the exchange of a segment can go on while the next is computed, and all ranks have as much to do of each.
    """

    def __init__(self, ranks: Exchange, segments: Sequence[Shards], tree: TreeOfRanks) -> None:
        self._ranks, self._segments = ranks, segments
        self._means = [ShardedMeans(ranks, shards, tree) for shards in segments]
        self._starts: list[int] = [0, *np.cumsum([shards.nbytes for shards in segments]).tolist()]

    @property
    def nbytes(self) -> int:
        """Bytes of all segments."""
        return self._starts[-1]

    @property
    def names(self) -> list[list[str]]:
        """What lies in each segment."""
        return [[extent.name for extent in shards.extents] for shards in self._segments]

    def rows(self, name: str) -> list[Array]:
        """Where the sums of what has this name may be put before `begin`, which then copies nothing."""
        of_all = (means.rows for means, names in zip(self._means, self.names, strict=True) if name in names)
        return [row[name] for row in next(of_all)]

    def pieces(self, rank: int) -> list[Piece]:
        """What lies in the shards of a rank."""
        return [piece for shards in self._segments for piece in shards.pieces(rank)]

    def begin(self, segment: int, partials: Mapping[str, Sequence[Array]]) -> None:
        """Begin to exchange the sums of a segment; all ranks begin all segments in the same order."""
        self._means[segment].begin(partials)

    def means(self, names: Container[str]) -> dict[str, Array]:
        """The means of this rank's pieces of what has names, of all segments, once they have arrived."""
        every = [means.means() for means in self._means]
        return {name: array for found in every for name, array in found.items() if name in names}

    def collected(self, own: Arrays) -> dict[str, Array]:
        """On rank 0 the whole arrays of which each rank gives its pieces ``own``; elsewhere none."""
        parts = [
            means.collected({name: own[name] for name in names if name in own})
            for means, names in zip(self._means, self.names, strict=True)
        ]
        return {name: array for part in parts for name, array in part.items()}

    def gather(self, block: Array) -> None:
        """Fill the bytes of the arena on all ranks, of which each has its shards filled."""
        for shards, part in zip(self._segments, self._parts(block), strict=True):
            self._ranks.gather(part, shards.bounds)

    def views(self, block: Array) -> dict[str, Array]:
        """The arrays in bytes of the arena."""
        found = zip(self._segments, self._parts(block), strict=True)
        return {n: a for shards, part in found for n, a in shards.views(part, 0, shards.every).items()}

    def _parts(self, block: Array) -> list[Array]:
        return [block[start:stop] for start, stop in pairwise(self._starts)]


def _stretches(shards: Shards, low: int, high: int) -> list[Neighbours]:
    found: list[Neighbours] = []
    for extent in shards.extents:
        start, stop, dtype = max(extent.start, low) - low, min(extent.stop, high) - low, extent.spec.dtype
        if start >= stop:
            continue
        if found and found[-1].dtype == dtype:
            start = found.pop().start
        found.append(Neighbours(dtype, start, stop))
    return found


class Held(NamedTuple):
    """An entry of the optimizer's state as a rank holds it: its key, what it is whole, and which part; None for all."""

    key: str
    spec: Spec
    piece: Piece | None

    @property
    def nbytes(self) -> int:
        """Bytes of what is held."""
        size = self.spec.size if self.piece is None or self.piece.whole else self.piece.stop - self.piece.start
        return size * self.spec.dtype.itemsize

    def of(self, array: Array) -> Array:
        """What is held of the whole entry."""
        return array if self.piece is None else self.piece.of(array)


class StateShares:
    """The optimizer's state, of which each rank holds that of the parameters in its shard, and all what is of none.

    Args:
        groups: of all parameters.
        params: all of them.
        pieces: of each rank, what lies in its shard, by the names of parameters.
    """

    def __init__(self, ranks: Exchange, groups: Groups, params: Arrays, pieces: Sequence[Mapping[str, Piece]]) -> None:
        self._ranks, own = ranks, pieces[ranks.rank]
        self.specs = _specs(groups, params)
        """Shape and dtype of every entry of the whole state."""
        shares = [groups.share(names) for names in pieces]
        self.groups = shares[ranks.rank]
        """Those of the parameters of this rank."""
        self._held = [
            [Held(key, self.specs[key], None if name is None else pieces[rank][name]) for key, name in owners.items()]
            for rank, owners in enumerate(share.owners for share in shares)
        ]
        state = self.groups.init({name: piece.of(params[name]) for name, piece in own.items()})
        self._block, self.state = in_one_block(state)
        sizes = [sum(aligned(held.nbytes) for held in entries) for entries in self._held]
        self._bounds = [0, *np.cumsum(sizes).tolist()]

    def collected(self) -> dict[str, Array]:
        """On rank 0 the whole state; elsewhere what this rank holds."""
        block = self._ranks.collect(self._block, self._bounds)
        if self._ranks.rank:
            return self.state
        whole = {key: np.empty(spec.shape, spec.dtype) for key, spec in self.specs.items()}
        for first, entries in zip(self._bounds, self._held, strict=False):
            for held in entries:
                part = held.of(whole[held.key])
                part[...] = block[first : first + held.nbytes].view(part.dtype).reshape(part.shape)
                first += aligned(held.nbytes)
        return whole

    def take(self, whole: Arrays) -> None:
        """Hold what is this rank's of a whole state."""
        for held in self._held[self._ranks.rank]:
            self.state[held.key][...] = held.of(whole[held.key])


def _specs(groups: Groups, params: Arrays) -> dict[str, Spec]:
    """Of every entry of the state, which is not kept."""
    rules = Groups(groups.groups, groups.frozen)
    made = {key: Spec(array.shape, array.dtype) for key, array in rules.init(params).items()}
    owned = {key: name for key, name in groups.owners.items() if key not in made and name is not None}
    return {**made, **{key: Spec(params[name].shape, params[name].dtype) for key, name in owned.items()}}


def gathered(ranks: Exchange, own: Array, counts: Sequence[int]) -> Array:
    """The rows of all ranks, of which each has ``counts[rank]``, in order; on every rank."""
    whole = np.empty((sum(counts), *own.shape[1:]), own.dtype)
    starts = [0, *np.cumsum(counts).tolist()]
    whole[starts[ranks.rank] : starts[ranks.rank + 1]] = own
    row = whole[:1].nbytes
    ranks.gather(bytes_of(whole), [start * row for start in starts])
    return whole


def from_first(ranks: Exchange, array: Array) -> Array:
    """What rank 0 has, on every rank; the others give an array of the same shape and dtype."""
    own = array[None] if ranks.rank == 0 else array[None][:0]
    return gathered(ranks, own, [1] + [0] * (ranks.size - 1)).reshape(array.shape)

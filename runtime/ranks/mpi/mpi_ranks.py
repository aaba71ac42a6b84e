"""The exchange over MPI: bytes by messages between pairs of ranks, whole numbers by Allreduce.

Floats are never handed to an operation of MPI, whose order of additions depends on the number of ranks and on the
algorithm that it chooses for a size.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ....base.arrays import Array
from ..exchange import Wait
from .package import mpi

CHECK_EVERY = 1000

SCATTERED, GATHERED = 1, 2
"""Tags of messages."""

LONG = 1 << 14
"""Bytes of a shard from which a gather goes directly from rank to rank: as many messages as ranks, and each byte moved
once. Below, Allgatherv needs only as many rounds as the number of ranks has bits."""


class Ranks:
    """The ranks of one run as one of them sees them: what `Trainer` takes as ``ranks``. `init` makes it.

    Args:
        communicator: of mpi4py; the ranks that train together.
        overlap: whether a scatter is only begun, and goes on beside what is computed next; else it is done when it
            returns. The bits are the same.
        check_every: after how many steps the ranks compare their parameters.
    """

    def __init__(self, communicator: Any, *, overlap: bool = True, check_every: int = CHECK_EVERY) -> None:
        self._mpi, self._communicator = mpi("Ranks"), communicator
        self._rank, self._size = int(communicator.Get_rank()), int(communicator.Get_size())
        beside = communicator.Split_type(self._mpi.COMM_TYPE_SHARED)
        self._local_rank = int(beside.Get_rank())
        beside.Free()
        self._rooms: dict[tuple[int, ...], list[Array]] = {}
        self.overlap, self.check_every = overlap, check_every

    @property
    def rank(self) -> int:
        """Which one this is: 0, 1, … below ``size``."""
        return self._rank

    @property
    def size(self) -> int:
        """How many there are."""
        return self._size

    @property
    def local_rank(self) -> int:
        """Which one this is among those of its machine."""
        return self._local_rank

    def scatter(self, rows: Sequence[Array], bounds: Sequence[int], counts: Sequence[int]) -> Wait:
        """Give every rank its shard of the rows of all ranks, as `Exchange` says."""
        arrived = self._room(rows, bounds, counts)
        firsts = [0, *accumulate(counts)]
        for place, row in enumerate(rows, firsts[self._rank]):
            arrived[place] = row[slice(*bounds[self._rank : self._rank + 2])]
        begun = list[Any]()
        for to, source in self._others():
            for shard in arrived[firsts[source] : firsts[source + 1]]:
                begun.append(self._communicator.Irecv([shard, self._mpi.BYTE], source, SCATTERED))
            for row in rows:
                sent = row[bounds[to] : bounds[to + 1]]
                begun.append(self._communicator.Isend([sent, self._mpi.BYTE], to, SCATTERED))
        if not self.overlap:
            self._mpi.Request.Waitall(begun)

        def wait() -> Sequence[Array]:
            self._mpi.Request.Waitall(begun)
            return arrived

        return wait

    def gather(self, whole: Array, bounds: Sequence[int]) -> None:
        """Fill ``whole`` on all ranks, of which each has its shard, as `Exchange` says."""
        if len(whole) < LONG * self._size:
            self._communicator.Allgatherv(self._mpi.IN_PLACE, self._shards(whole, bounds))
            return
        shards, begun = [whole[start:stop] for start, stop in pairwise(bounds)], list[Any]()
        for to, source in self._others():
            begun.append(self._communicator.Irecv([shards[source], self._mpi.BYTE], source, GATHERED))
            begun.append(self._communicator.Isend([shards[self._rank], self._mpi.BYTE], to, GATHERED))
        self._mpi.Request.Waitall(begun)

    def collect(self, own: Array, bounds: Sequence[int]) -> Array:
        """The shards of all ranks on rank 0, as `Exchange` says."""
        whole = np.empty(bounds[-1] if self._rank == 0 else 0, np.uint8)
        there = self._shards(whole, bounds) if self._rank == 0 else None
        self._communicator.Gatherv([own, self._mpi.BYTE], there)
        return whole

    def largest(self, values: Array) -> None:
        """Replace every element (int64) by its maximum over the ranks, as `Exchange` says."""
        self._communicator.Allreduce(self._mpi.IN_PLACE, values, self._mpi.MAX)

    def __repr__(self) -> str:
        return f"Ranks(rank {self._rank} of {self._size})"

    def _others(self) -> Iterator[tuple[int, int]]:
        """To whom this rank sends and from whom it receives, in an order in which no rank is everybody's next."""
        for k in range(1, self._size):
            yield (self._rank + k) % self._size, (self._rank - k) % self._size

    def _shards(self, whole: Array, bounds: Sequence[int]) -> list[Any]:
        return [whole, (np.diff(bounds), np.array(bounds[:-1])), self._mpi.BYTE]

    def _room(self, rows: Sequence[Array], bounds: Sequence[int], counts: Sequence[int]) -> list[Array]:
        """Where the shards of others arrive, and nothing in the places of one's own: the same for the same rows.

        Several scatters between equal bounds may be under way, of other rows.
        """
        own, key = bounds[self._rank + 1] - bounds[self._rank], (*(row.ctypes.data for row in rows), *counts, *bounds)
        if key not in self._rooms:
            sizes = [0 if rank == self._rank else own for rank, count in enumerate(counts) for _ in range(count)]
            self._rooms[key] = [np.empty(size, np.uint8) for size in sizes]
        return self._rooms[key]

"""The exchange over MPI: bytes by Alltoallv, Allgatherv and Gatherv, whole numbers by Allreduce.

Floats are never handed to an operation of MPI, whose order of additions depends on the number of ranks and on the
algorithm that it chooses for a size.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ...arrays import Array
from ..step.exchange import Wait
from .package import mpi

CHECK_EVERY = 1000


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
        self._rooms: dict[tuple[int, ...], Array] = {}
        self.overlap, self.check_every = overlap, check_every

    @property
    def rank(self) -> int:
        """Which one this is: 0, 1, … below ``size``."""
        return self._rank

    @property
    def size(self) -> int:
        """How many there are."""
        return self._size

    def scatter(self, rows: Sequence[Array], bounds: Sequence[int], counts: Sequence[int]) -> Wait:
        """Give every rank its shard of the rows of all ranks, as `Exchange` says.

        The first row of each rank goes by one Alltoallv from where it lies, the second ones by another: there are few.
        """
        received = self._room(counts, bounds)
        begun = [self._exchange(k, rows, received, bounds, counts) for k in range(max(counts))]
        first, low, high = sum(counts[: self._rank]), *bounds[self._rank : self._rank + 2]

        def wait() -> Sequence[Array]:
            for request in begun:
                request.Wait()
            own = [row[low:high] for row in rows]
            return [*received[:first], *own, *received[first:]]

        return wait

    def gather(self, whole: Array, bounds: Sequence[int]) -> None:
        """Fill ``whole`` on all ranks, of which each has its shard, as `Exchange` says."""
        self._communicator.Allgatherv(self._mpi.IN_PLACE, self._shards(whole, bounds))

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

    def _exchange(
        self, k: int, rows: Sequence[Array], received: Array, bounds: Sequence[int], counts: Sequence[int]
    ) -> Any:
        """The request of the Alltoallv of the rows of number ``k``, of the ranks that have as many.

        A rank's own shard stays where it is.
        """
        has = np.array([k < count for count in self._of_others(counts)])
        shards, own = np.diff(bounds), received.shape[1]
        shards[self._rank] = 0
        firsts = np.array([0, *accumulate(self._of_others(counts))][:-1])
        send = [rows[k], (shards, np.array(bounds[:-1])), self._mpi.BYTE] if k < len(rows) else self._nothing()
        receive = [received.reshape(-1), (own * has, (firsts + k) * own * has), self._mpi.BYTE]
        if self.overlap:
            return self._communicator.Ialltoallv(send, receive)
        self._communicator.Alltoallv(send, receive)
        return self._mpi.REQUEST_NULL

    def _nothing(self) -> list[Any]:
        none = np.zeros(self._size, np.int64)
        return [np.empty(0, np.uint8), (none, none), self._mpi.BYTE]

    def _shards(self, whole: Array, bounds: Sequence[int]) -> list[Any]:
        return [whole, (np.diff(bounds), np.array(bounds[:-1])), self._mpi.BYTE]

    def _room(self, counts: Sequence[int], bounds: Sequence[int]) -> Array:
        """Where the shards of others arrive: the same memory for every scatter between these bounds."""
        own, key = bounds[self._rank + 1] - bounds[self._rank], (*counts, *bounds)
        if key not in self._rooms:
            self._rooms[key] = np.empty((sum(self._of_others(counts)), own), np.uint8)
        return self._rooms[key]

    def _of_others(self, counts: Sequence[int]) -> list[int]:
        """How many rows come from each rank: none from this one."""
        return [0 if rank == self._rank else count for rank, count in enumerate(counts)]

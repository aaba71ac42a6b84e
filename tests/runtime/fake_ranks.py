"""Ranks of one process: threads that exchange bytes through common memory, as other processes do by messages."""

from collections.abc import Callable, Sequence
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
T = TypeVar("T")


class FakeRank:
    """One of several ranks, each in a thread of its own."""

    def __init__(self, rank: int, size: int, barrier: Barrier, board: list[Any]) -> None:
        self.rank, self.size, self.local_rank = rank, size, rank
        self._barrier, self._board = barrier, board
        self.overlap, self.check_every = True, 2
        self.sent = 0
        """Bytes that were given to others."""

    @classmethod
    def alone(cls) -> "FakeRank":
        """The only rank."""
        return cls(0, 1, Barrier(1), [None])

    def scatter(self, rows: Sequence[Array], bounds: Sequence[int], counts: Sequence[int]) -> Callable[[], list[Array]]:
        assert len(rows) == counts[self.rank], "one row for each sum"
        assert all(row.dtype == np.uint8 and row.nbytes == bounds[-1] and row.flags.c_contiguous for row in rows)
        low, high = bounds[self.rank : self.rank + 2]
        self.sent += sum(bounds[-1] - (high - low) for _ in rows)
        every = self._all(lambda: [row.copy() for row in rows])
        return lambda: [row[low:high] for of_rank in every for row in of_rank]

    def gather(self, whole: Array, bounds: Sequence[int]) -> None:
        assert whole.dtype == np.uint8 and whole.nbytes == bounds[-1]
        low, high = bounds[self.rank : self.rank + 2]
        self.sent += (high - low) * (self.size - 1)
        whole[:] = np.concatenate(self._all(lambda: whole[low:high].copy()))

    def collect(self, own: Array, bounds: Sequence[int]) -> Array:
        assert own.dtype == np.uint8 and own.nbytes == bounds[self.rank + 1] - bounds[self.rank]
        every = np.concatenate(self._all(own.copy))
        return every if self.rank == 0 else every[:0]

    def largest(self, values: Array) -> None:
        assert values.dtype == np.int64
        values[:] = np.maximum.reduce(self._all(values.copy))

    def _all(self, give: Callable[[], Any]) -> list[Any]:
        """What all ranks give, in their order."""
        self._board[self.rank] = give()
        self._barrier.wait()
        every = list(self._board)
        self._barrier.wait()
        return every


def run_ranks(size: int, run: Callable[[FakeRank], T]) -> list[T]:
    """What ``run`` returns on each of ``size`` ranks. Raises the first error, at which the other ranks end."""
    barrier, board = Barrier(size, timeout=120), [None] * size
    results: list[Any] = [None] * size
    errors: list[BaseException] = []

    def one(rank: int) -> None:
        try:
            results[rank] = run(FakeRank(rank, size, barrier, board))
        except BrokenBarrierError:
            pass
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results

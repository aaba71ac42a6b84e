"""The helping threads: they claim parts of the calls that a running step publishes, and sleep when idle."""

import os
import threading
from contextlib import suppress

import numpy as np

from ....base import system
from .machine import LINE, PARKED, RESTS, STOP, YIELD, help_out


class HelperPool:
    """Helpers, and the control block through which `machine.run` talks to them.

    One thread has the helpers at a time, for the length of a call; another that comes meanwhile runs its call
    alone, with the same bits. An interrupt may come between any two lines here: nothing is held that it could
    leave behind, and a helper that was not woken now is woken by the next step.
    """

    def __init__(self, helpers: int) -> None:
        memory = np.zeros(PARKED + (helpers + 2) * LINE, np.uint8)
        self._words = memory[-memory.ctypes.data % LINE :][: PARKED + (helpers + 1) * LINE].view(np.int64)
        self.control = int(self._words.ctypes.data)
        self._words[YIELD // 8] = system.address_of_yield()
        self._rests = self._words[RESTS // 8 :][:1]
        self._parked = [self._words[(PARKED + i * LINE) // 8 :][:1] for i in range(helpers)]
        self._gates = [threading.Lock() for _ in range(helpers)]  # each locked by its helper; unlocking wakes it
        self._threads = [
            threading.Thread(target=self._work, args=(i,), name=f"dgrr-{i + 1}", daemon=True) for i in range(helpers)
        ]
        for gate, thread in zip(self._gates, self._threads, strict=True):
            gate.acquire()
            system.start_thread(thread)

    def _work(self, i: int) -> None:
        parked = int(self._parked[i].ctypes.data)
        while not help_out(self.control, parked):
            self._gates[i].acquire()

    def wake(self) -> None:
        """Wake the helpers that sleep, unless they rest."""
        if self._rests[0]:
            return
        for parked, gate in zip(self._parked, self._gates, strict=True):
            if parked[0]:
                _unlock(gate)

    def stop(self) -> None:
        """End the helpers, after the parts that they have claimed; waits for them."""
        self._words[STOP // 8] = 1
        for gate in self._gates:  # whether it sleeps or not: one about to sleep may not have said so yet
            _unlock(gate)
        for thread in self._threads:
            thread.join()


def _unlock(gate: threading.Lock) -> None:
    """Unlock a gate, unless it is."""
    if gate.locked():
        with suppress(RuntimeError):  # another thread was faster
            gate.release()


class Loan:
    """A ``with`` block in which a pool's helpers are awake: it yields what `machine.run` takes as control, 0 for none.

    The block keeps the control block in memory.
    """

    __slots__ = ("_pool",)

    def __init__(self, pool: HelperPool | None) -> None:
        self._pool = pool

    def __enter__(self) -> int:
        if self._pool is None:
            return 0
        self._pool.wake()
        return self._pool.control

    def __exit__(self, *error: object) -> None:
        """Nothing to give back: helpers fall asleep by themselves."""


NO_HELPERS = Loan(None)


class Threads:
    """How many threads kernels may use, and the pool of those besides the caller's."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: HelperPool | None = None
        self._starting = threading.Lock()

    def lent(self, *, wanted: bool = True) -> "Loan":
        """A block that has the helpers, if they are wanted and there are any."""
        if not wanted or self.count == 1:
            return NO_HELPERS
        return Loan(self._pool or self._started())

    def _started(self) -> HelperPool:
        with self._starting:
            if self._pool is None:
                self._pool = HelperPool(self.count - 1)
            return self._pool

    def set(self, count: int) -> None:
        """Use ``count`` threads from now on."""
        if count != int(count) or count < 1:
            raise ValueError(f"set_threads: expected a whole number of at least 1, got {count}")
        if self._pool is not None:
            self._pool.stop()
        self._pool, self.count = None, int(count)

    def forget(self) -> None:
        """In a forked child, where no other thread survives: the pool is started anew when it is needed."""
        self._pool, self._starting = None, threading.Lock()


def _available() -> int:
    """The threads asked for by DGRR_THREADS, else one per core that this process may use."""
    asked = os.environ.get("DGRR_THREADS", "")
    if asked:
        if not asked.isdecimal() or int(asked) < 1:
            raise ValueError(f"DGRR_THREADS: expected a whole number of at least 1, got {asked!r}")
        return int(asked)
    return system.available_cores()


THREADS = Threads(_available())
system.after_fork(THREADS.forget)


def get_threads() -> int:
    """How many threads kernels may use."""
    return THREADS.count


def set_threads(count: int) -> None:
    """Let kernels use ``count`` threads; no result depends on it.

    Raises ValueError if ``count`` is less than 1.
    """
    THREADS.set(count)

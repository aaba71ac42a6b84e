"""Running a kernel on numpy arrays, on as many threads as its work is worth."""

import os
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from .kernel import Kernel, call

PARALLEL_WORK = 1 << 20
"""Arithmetic operations below which a kernel runs on one thread: a hand-over costs about 50 us."""


class Words:
    """The int64 words of a kernel call, ints as they are and floats as the bits of their float64, and their address."""

    __slots__ = ("address", "values")

    def __init__(self, *values: float) -> None:
        packed = [v if isinstance(v, int) else struct.unpack("<q", struct.pack("<d", v))[0] for v in values]
        self.values = np.array(packed, np.int64)
        self.address = int(self.values.ctypes.data)


class Threads:
    """How many threads kernels may use, and the pool that runs them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None
        self._owner = os.getpid()

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The worker threads; started on first use, and anew in a forked child, where no thread survives."""
        if self._pool is None or self._owner != os.getpid():
            self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="dgrr")
            self._owner = os.getpid()
        return self._pool

    def set(self, count: int) -> None:
        """Use ``count`` threads from now on."""
        if count != int(count) or count < 1:
            raise ValueError(f"set_threads: expected a whole number of at least 1, got {count}")
        if self._pool is not None and self._owner == os.getpid():
            self._pool.shutdown()
        self._pool, self.count = None, int(count)


def _available() -> int:
    """The threads asked for by DGRR_THREADS, else one per core that this process may use."""
    asked = os.environ.get("DGRR_THREADS", "")
    if asked:
        if not asked.isdecimal() or int(asked) < 1:
            raise ValueError(f"DGRR_THREADS: expected a whole number of at least 1, got {asked!r}")
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Arrays = Sequence[npt.NDArray[Any]]

THREADS = Threads(_available())


def get_threads() -> int:
    """How many threads kernels may use."""
    return THREADS.count


def set_threads(count: int) -> None:
    """Let kernels use ``count`` threads; no result depends on it.

    Raises ValueError if ``count`` is less than 1.
    """
    THREADS.set(count)


def launch(kernel: Kernel, dtype: np.dtype[Any], ints: Words, arrays: Arrays, work: int) -> int:
    """Run ``kernel`` for elements of ``dtype`` on ``arrays`` (output first); the least non-zero status, or 0.

    ``work`` is the number of arithmetic operations, from which the number of threads follows.
    The arrays must have the layout that the kernel expects: nothing is checked here.
    """
    return run(kernel.address(dtype), ints, arrays, work)


def run(address: int, ints: Words, arrays: Arrays, work: int) -> int:
    """`launch` for a caller that has looked the kernel up before."""
    parts = THREADS.count if work >= PARALLEL_WORK else 1
    if parts == 1:
        return _run_share(address, ints, arrays, 0, 1)
    shares = [THREADS.pool.submit(_run_share, address, ints, arrays, part, parts) for part in range(parts)]
    return min((s for s in (share.result() for share in shares) if s), default=0)


def _run_share(address: int, ints: Words, arrays: Arrays, part: int, parts: int) -> int:
    """One share, holding on to words and arrays: an interrupted caller does not wait for its workers."""
    status: int = call(address, ints.address, part, parts, tuple(map(id, arrays)))
    return status

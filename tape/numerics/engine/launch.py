"""Running one kernel on numpy arrays, on as many threads as its work is worth."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base.arrays import Array
from .kernel import Kernel, call
from .machine import run as run_rows
from .threads import THREADS

PARALLEL_WORK = 1 << 17
"""Arithmetic operations below which a kernel runs on one thread: a hand-over costs about seven microseconds."""

MAX_PARTS = 1 << 10
"""The most parts of one call."""


class Words:
    """The int64 words of a kernel call, ints as they are and floats as the bits of their float64, and their address."""

    __slots__ = ("address", "values")

    def __init__(self, *values: float) -> None:
        packed = [v if isinstance(v, int) else struct.unpack("<q", struct.pack("<d", v))[0] for v in values]
        self.values = np.array(packed, np.int64)
        self.address: int = self.values.__array_interface__["data"][0]  # a third of what ``ctypes`` takes


def parts_for(work: int) -> int:
    """Into how many parts a call of so many arithmetic operations is split."""
    return min(THREADS.count, MAX_PARTS) if work >= PARALLEL_WORK else 1


def launch(kernel: Kernel, dtype: np.dtype[Any], ints: Words, arrays: Sequence[Array], work: int) -> int:
    """Run ``kernel`` for elements of ``dtype`` on ``arrays`` (output first); the least non-zero status, or 0.

    ``work`` is the number of arithmetic operations, from which the number of threads follows.
    The arrays must have the layout that the kernel expects: nothing is checked here.
    """
    return run(kernel.address(dtype), ints, arrays, parts_for(work))


def run(address: int, ints: Words, arrays: Sequence[Array], parts: int) -> int:
    """`launch` for a caller that has looked the kernel up before, in so many parts.

    Memory to work in that is among the arrays is made for this number of parts, which `parts_for` may answer
    otherwise a moment later: other threads call `set_threads`.
    """
    if parts == 1:
        status: int = call(address, ints.address, 0, 1, tuple(map(id, arrays)))
        return status
    table = np.array([a.ctypes.data for a in arrays], np.int64)
    row = np.array([address, table.ctypes.data, ints.address, parts], np.int64)
    fault = np.zeros(2, np.int64)
    with THREADS.lent() as control:
        run_rows(row.ctypes.data, 1, control, fault)
    return int(fault[0])

"""Programs for the machine: rows of kernels that count their parts, and pools to run them on."""

# numba's kernels carry no types.
# mypy: disable-error-code="no-untyped-def,misc,no-any-return,call-arg"
# pyright: basic, reportCallIssue=false
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from dgrr.tape.numerics.engine import machine
from dgrr.tape.numerics.engine.intrinsics import word
from dgrr.tape.numerics.engine.kernel import KERNELS, Kernel, kernel, share, vector
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.numerics.engine.threads import HelperPool

Array = npt.NDArray[Any]


def unlisted(body: Any) -> Kernel:
    """A kernel that the table does not keep."""
    made = kernel(body)
    del KERNELS[made.name]
    return made


@unlisted
def machine_counts(table, ints, part, parts):
    """Counts each item of its share, of as many as its first word says; the least status of these, a word each."""
    start, n = share(word(ints, 0), part, parts)
    counts, least = vector(table, 0, start, n), 0
    for i in range(n):
        counts[i] += 1
        status = word(ints, 1 + start + i)
        if status != 0 and (least == 0 or status < least):
            least = status
    return least


class Program:
    """Rows of a table and all that they point to."""

    def __init__(self, *calls: tuple[Kernel, Sequence[Array], Words, int]) -> None:
        self.kept: list[Any] = [calls]
        rows: list[list[int]] = []
        for made, arrays, words, parts in calls:
            table = np.array([a.ctypes.data for a in arrays], np.int64)
            self.kept.append(table)
            rows.append([made.address(arrays[0].dtype), table.ctypes.data, words.address, parts])
        self.rows = np.array(rows, np.int64).reshape(-1, machine.ROW)
        self.fault = np.zeros(2, np.int64)

    def run(self, control: int = 0) -> list[int]:
        """Whether it failed, and the fault if so: status, row."""
        failed = machine.run(self.rows.ctypes.data, len(self.rows), control, self.fault)
        return [failed, *self.fault.tolist()] if failed else [failed]


@contextmanager
def pool(helpers: int) -> Iterator[HelperPool]:
    """A pool of its own."""
    made = HelperPool(helpers)
    made.wake()
    try:
        yield made
    finally:
        made.stop()


def counting(parts: int, *statuses: int) -> tuple[Array, tuple[Kernel, Sequence[Array], Words, int]]:
    """A call with as many items as parts, and statuses of these; whoever runs it whole runs each item once, too."""
    counts = np.zeros(parts, np.int64)
    return counts, (machine_counts, [counts], Words(parts, *(statuses or (0,) * parts)), parts)


def publish(made: HelperPool, program: Program, generation: int, parts: int, following: int) -> None:
    """What a running step says to its helpers."""
    at = {word: word // 8 for word in (machine.CURRENT, machine.STATUS, machine.TICKET)}
    made._words[at[machine.CURRENT]] = program.rows.ctypes.data
    made._words[at[machine.STATUS]] = machine.NO_STATUS
    made._words[at[machine.TICKET]] = generation << 32 | parts << 16 | following

"""Calls in turn, made in one launch: the rows of the machine that prepared parts give it."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ....base.arrays import Array
from ..engine import machine
from ..engine.kernel import Kernel
from ..engine.launch import Words
from ..engine.threads import THREADS
from .places import address_of

_WORD = np.dtype(np.int64)
_TABLE = np.zeros(1, np.int64)
"""The pointer table of kernels whose addresses all stand among their words."""

_NOTHING = np.empty((0, 3), np.int64)
"""What is kept of each run."""

Row = list[int]
"""A row of `machine.run`."""


class PreparedPart(Protocol):
    """What gives rows, and keeps what they point to."""

    def rows(self) -> list[Row]:
        """Its rows, for as many threads as there are now; asked again when there are others."""
        ...


def row(kernel: Kernel, words: Words, parts: int = 1) -> Row:
    """The row that calls a kernel without a pointer table. The caller keeps the words."""
    return [kernel.address(_WORD), address_of(_TABLE), words.address, parts]


class Copied:
    """What is copied before each run: of ``data``, from the next of ``places`` on, to each ``out`` as many bytes as it
    has, from so many bytes behind that place.
    """

    def __init__(self, outs: Sequence[tuple[Array, int]]) -> None:
        rows = [(address_of(out), 0, 1, 0, 1, 1, out.nbytes) for out, _ in outs]
        self._behind = np.array([at for _, at in outs], np.int64)
        self._outs = outs
        self.table: Array = np.array(rows, np.int64).reshape(-1, machine.SOURCE)

    def of(self, data: Array, places: Array) -> "Copied":
        """The same, of these; the caller keeps them until it has run."""
        self.table[:, machine.BASE] = address_of(data) + self._behind
        self.table[:, machine.PLACES] = address_of(places)
        return self


class PreparedCalls:
    """Parts that run in turn, up to the first that reports a status.

    >>> from ..xxh3.digests import Digests, Message
    >>> from .places import place_of
    >>> x, head, out = np.arange(3.0), np.zeros(16, np.uint8), np.empty(16, np.uint8)
    >>> program = PreparedCalls(Digests([Message(head, x.nbytes, out, place_of(x), numbers=x.dtype)]))
    >>> program.run()
    0
    >>> x[1] = np.nan
    >>> program.run()
    1
    """

    def __init__(self, *parts: PreparedPart) -> None:
        self._parts = parts
        self._fault = np.zeros(2, np.int64)
        self._fault_address = address_of(self._fault)
        self._launch = machine.run_fed(0)
        self._threads = self._address = self._count = 0
        self._shared = False
        self._rows: Array = np.zeros((0, machine.ROW), np.int64)

    def run(self) -> int:
        """Run every part: 0, or the status of the one that ended the run."""
        if self._threads != THREADS.count:
            self._bind()
        if self._shared:
            with THREADS.lent() as control:
                failed = self._launch(self._address, self._count, control, self._fault_address, 0, 0, ())
        else:
            failed = self._launch(self._address, self._count, 0, self._fault_address, 0, 0, ())
        return int(self._fault[0]) if failed else 0

    def run_on(self, copied: "Copied", times: int) -> int:
        """Run so many times, each on the next bytes that are copied to their place; how many runs reported nothing."""
        if self._threads != THREADS.count:
            self._bind()
        with THREADS.lent(wanted=self._shared) as control:
            return machine.run_steps(self._address, self._count, control, self._fault, copied.table, _NOTHING, times)

    def rows(self) -> Array:
        """The rows of all parts, for as many threads as there are: for a table of which they are a part."""
        if self._threads != THREADS.count:
            self._bind()
        return self._rows

    def _bind(self) -> None:
        """Ask for the rows for as many threads as there are."""
        self._threads = THREADS.count
        found = [row for part in self._parts for row in part.rows()]
        self._rows = rows = np.array(found, np.int64).reshape(-1, machine.ROW)
        self._address, self._count = address_of(rows), len(rows)
        self._shared = bool((rows[:, machine.PARTS] > 1).any())

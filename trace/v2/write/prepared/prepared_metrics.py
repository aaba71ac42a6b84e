"""The METRICS of the steps of a launch."""

from collections.abc import Iterator, Mapping

import numpy as np
from typing_extensions import Buffer

from .....base.arrays import Array
from .....tape.numerics.prepared.given import Given
from .....tape.numerics.prepared.moves import Appended, Counter, Move, Moves
from .....tape.numerics.prepared.prepared_calls import PreparedCalls, PreparedPart
from ...format.of_step import METRICS
from ..writer import WRITTEN_AT_ONCE, TraceWriter
from .framed import BEFORE_FRONT, Framed


class PreparedMetrics:
    """Makes a METRICS frame behind each STEP; no frame where there are no names.

    Where STEPs are held back, they are appended to what a writer holds. The names have been recorded before, so that
    they are known to be such as a trace can hold.
    """

    def __init__(self, names: tuple[str, ...], writer: TraceWriter, *, appended: bool) -> None:
        self.names, self.appended = names, appended
        declared = METRICS.front(writer.layout)
        front = declared.encode(values=[0.0] * len(names), names=names)
        memory = np.frombuffer(bytearray(BEFORE_FRONT) + front, np.uint8)
        self._values, self._step = memory[BEFORE_FRONT + declared.fixed :], np.zeros(1, np.int64)
        self._given = Given([(np.dtype(np.float64), ())] * len(names))
        self._framed, self._writer = Framed(METRICS, memory, 0, self._step, writer.frames), writer
        self._taking, self._program = PreparedCalls(self._given), PreparedCalls(*(self._parts() if names else ()))
        self.nbytes = self._framed.nbytes if names else 0
        """Of a frame."""
        self.is_held = self.nbytes < WRITTEN_AT_ONCE and self._framed.payload <= writer.header.largest_payload
        """Whether it is short enough to be held back, and not to be cut."""

    def rows(self, step: int, metrics: Mapping[str, Array]) -> Array:
        """Rows of the machine that make the frames of the steps from one on, of what lies there behind each of them."""
        arrays = tuple(metrics.values())
        self._given.take(arrays)
        self._taking.run()
        self._step[0] = step
        return self._program.rows()

    @property
    def pieces(self) -> list[Buffer]:
        """The frame of the last step."""
        return self._framed.buffers([]) if self.names else []

    def _parts(self) -> Iterator[PreparedPart]:
        yield Moves([Move(self._values[8 * i :][:8], self._given.place(i)) for i in range(len(self.names))])
        yield from self._framed.parts()
        if self.appended:
            yield Appended(self._framed.pieces([]), self._writer.held, self._writer.held_bytes)
        yield Moves([], [Counter(self._step)])

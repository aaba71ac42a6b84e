"""Whole frames of the steps of one kind: what a `PreparedFront` makes, with head, checksums, chain and body."""

from collections.abc import Iterator, Sequence

from typing_extensions import Buffer

from .....base.arrays import Array
from .....tape.numerics.prepared.moves import Appended
from .....tape.numerics.prepared.prepared_calls import PreparedPart
from ...format.digest import raw
from ...format.step import STEP
from ..scalar_names import ScalarNames
from ..tensors import RecordedTensors
from ..writer import WRITTEN_AT_ONCE, TraceWriter
from .framed import BEFORE_FRONT, Framed
from .prepared_front import PreparedFront, StepKind


class PreparedFrame(PreparedFront):
    """Makes the STEPs of one kind in one launch, and has both chains and all counts of the writer go on.

    A frame that is short enough is appended to what the writer holds back, with its body. Of others all but the body is
    made, whose arrays are written from where they lie.
    """

    def __init__(self, kind: StepKind, names: ScalarNames, tensors: RecordedTensors, writer: TraceWriter) -> None:
        super().__init__(kind, writer.layout, names, tensors, writer.last_link, writer.step_count, BEFORE_FRONT)
        self._writer, body = writer, sum(self._nbytes[self.body])
        self._framed = Framed(STEP, self._memory, body, self._step, writer.frames)
        self.payload, self.nbytes = self._framed.payload, self._framed.nbytes
        self.is_held = self.nbytes < WRITTEN_AT_ONCE
        """Whether a frame is short enough to be held back."""

    def _parts(self) -> Iterator[PreparedPart]:
        yield from super()._parts()
        yield from self._framed.parts()
        yield self._counted()
        if self.is_held:
            body = range(self.body.start, self.body.stop)
            pieces = self._framed.pieces([(self._given.place(i), self._nbytes[i]) for i in body])
            yield Appended(pieces, self._writer.held, self._writer.held_bytes)

    def pieces(self, arrays: Sequence[Array]) -> list[Buffer]:
        """The frame of the last step, made of these arrays, where it is not held back."""
        return self._framed.buffers([raw(array) for array in arrays[self.body]])

"""The steps of a run, recorded in one compiled call each, or in the launch of several."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .....base.arrays import Array
from .....base.completed_step import CompletedStep
from ..scalar_names import ScalarNames
from ..tensors import RecordedTensors
from ..writer import TraceWriter
from .prepared_frame import PreparedFrame
from .prepared_front import StepKind
from .prepared_steps import PreparedSteps


class StepRows(NamedTuple):
    """Rows of the machine, run behind each of so many steps at most; of each the bytes, and the front of the last."""

    rows: Array
    first: int
    steps: int
    nbytes: int
    front: memoryview


class PreparedFrames:
    """Writes the steps that can be recorded in one call."""

    def __init__(self, names: ScalarNames, tensors: RecordedTensors, writer: TraceWriter) -> None:
        self._names, self._tensors, self._writer = names, tensors, writer
        self._steps = PreparedSteps(names, tensors, writer.layout.state_every, self._made)

    def _made(self, kind: StepKind) -> PreparedFrame | None:
        """What makes the steps of a kind; None if their frames are to be cut."""
        frame = PreparedFrame(kind, self._names, self._tensors, self._writer)
        return frame if frame.payload <= self._writer.header.largest_payload else None

    def write(self, done: CompletedStep) -> memoryview | None:
        """Append the STEP of a step: its front, which is valid until the next one.

        None, with nothing done, where `PreparedSteps` makes none. Raises TraceWriteError: the file takes no more, or
        cannot be written.
        """
        self._writer.check_alive()
        made = self._steps.run(done)
        if made is None:
            return None
        frame, arrays = made
        self._writer.made(frame.nbytes, () if frame.is_held else frame.pieces(arrays))
        return frame.front

    def rows(self, first: CompletedStep, hyper: Sequence[Mapping[str, float]]) -> StepRows | None:
        """What records several steps in one launch, if a step like the first of them was the last one recorded."""
        frame, room = self._steps.next(first.step)
        if frame is None:
            return None
        steps = min(len(hyper), room, self._writer.room(frame.nbytes))
        rows = frame.rows(first, hyper[:steps]) if steps > 0 else None
        return None if rows is None else StepRows(rows, first.step, steps, frame.nbytes, frame.front)

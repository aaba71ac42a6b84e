"""The steps of a run, recorded in one compiled call each, or in the launch of several."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .....base.arrays import Array
from .....base.runs.completed_step import CompletedStep, StepNumbers
from .....tape.numerics.prepared.called import Called
from .....tape.numerics.prepared.prepared_calls import PreparedCalls
from ...format.frame_type import FrameType
from ...format.of_step import METRICS
from ..scalar_names import ScalarNames
from ..tensors import RecordedTensors
from ..writer import TraceWriter
from .prepared_frame import PreparedFrame
from .prepared_front import StepKind
from .prepared_metrics import PreparedMetrics
from .prepared_steps import PreparedSteps


class StepRows(NamedTuple):
    """Rows of the machine, run behind each of so many steps at most, and the front of the last step.

    ``made``, called behind the launch with the number of its steps, has the writer go on behind them, or raises what
    has ended the launch.
    """

    rows: Array
    first: int
    steps: int
    front: memoryview
    made: Callable[[int], None]


class PreparedFrames:
    """Writes the steps that can be recorded in one call."""

    def __init__(self, names: ScalarNames, tensors: RecordedTensors, writer: TraceWriter) -> None:
        self._names, self._tensors, self._writer = names, tensors, writer
        self._metrics = PreparedMetrics((), writer, appended=True)
        self._write: Callable[[], None] = lambda: None
        self._called = Called(lambda: self._write())
        self._steps = PreparedSteps(names, tensors, writer.layout, self._made)

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

    def rows(self, first: CompletedStep, hyper: Sequence[Mapping[str, float]], numbers: StepNumbers) -> StepRows | None:
        """What records several steps in one launch, if a step like the first of them was the last one recorded.

        Metrics of these names have been recorded, too.
        """
        frame, room = self._steps.next(first.step)
        metrics = None if frame is None else self._metrics_of(tuple(numbers.metrics), appended=frame.is_held)
        if frame is None or metrics is None:
            return None
        nbytes = frame.nbytes + metrics.nbytes
        told: list[FrameType[Any]] = [METRICS] if numbers.metrics else []
        steps = min(len(hyper), room, self._writer.room(nbytes if frame.is_held else 0, told=bool(told)))
        rows = frame.rows(first, hyper[:steps], numbers.scale) if steps > 0 else None
        if rows is None:
            return None
        every = [rows, metrics.rows(first.step, numbers.metrics)]
        if frame.is_held:
            return StepRows(
                np.concatenate(every), first.step, steps, frame.front, partial(self._made_in_launch, nbytes, told)
            )
        pieces = [*frame.pieces(frame.arrays(first, numbers.scale) or ()), *metrics.pieces]
        self._write = partial(self._writer.made, nbytes, pieces, told=told)
        every.append(PreparedCalls(self._called).rows())
        return StepRows(np.concatenate(every), first.step, steps, frame.front, self._require_written)

    def _made_in_launch(self, nbytes: int, told: Sequence[FrameType[Any]], steps: int) -> None:
        """Have the writer go on behind so many steps."""
        self._writer.made(nbytes, steps=steps, told=told)

    def _require_written(self, steps: int) -> None:
        """Raise what has ended the launch."""
        self._called.require_done()

    def _metrics_of(self, names: tuple[str, ...], *, appended: bool) -> PreparedMetrics | None:
        """What makes the METRICS of these; None if their frames cannot be held back."""
        if (self._metrics.names, self._metrics.appended) != (names, appended):
            self._metrics = PreparedMetrics(names, self._writer, appended=appended)
        return self._metrics if self._metrics.is_held else None

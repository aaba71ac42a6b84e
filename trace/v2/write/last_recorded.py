"""The step recorded last, of which more is said where the trace ends."""

from collections.abc import Sequence

from ....base.runs.completed_step import CompletedStep
from ..format.layout import FrameLayout
from ..format.step import STEP, StepRecord
from .tensors import RecordedTensors


class LastRecorded:
    """The step recorded last, or the beginning of the run, whose tensors have the digests ``start``."""

    def __init__(self, layout: FrameLayout, tensors: RecordedTensors, start: Sequence[bytes]) -> None:
        self._layout, self._tensors = layout, tensors
        self._settled: Sequence[bytes] = start
        self.done: CompletedStep | None = None
        """The step, as long as its arrays may be read; its front tells the digests of those that it lacks."""
        self.front: bytes | memoryview = b""
        """That of its STEP; empty before the first step is recorded, and behind one that could not be."""

    def forget(self) -> None:
        """Another step begins: of the one before, and of its own state until it is recorded, nothing is known."""
        self.done, self.front, self._settled = None, b"", []

    def settle(self) -> None:
        """Keep the digests after the step in place of its arrays, which may change from now on."""
        self._settled, self.done = self.digests(), None

    def digests(self) -> Sequence[bytes]:
        """Those of all tensors after the step, in the order of the schema; none where they are not known."""
        done = self.done
        if done is None:
            return self._settled
        if not self._layout.due(done.step):
            return self._tensors.whole(done.params, done.state, done.model_state).digests
        size, buffers, front = self._layout.digest_size, self._layout.schema.buffers, bytes(self.front)
        root = len(front) - size
        found = [front[i : i + size] for i in range(root - size * len(self._layout.schema.tensors), root, size)]
        return found[buffers:] + found[:buffers]

    def record(self, step: int) -> StepRecord:
        """What the front says, of which ``step`` is the number."""
        return STEP.front(self._layout).decode(step, bytes(self.front))

"""A run that is being recorded, whatever computes it, in one trace or several: it ends with its ``with`` block."""

from types import TracebackType
from typing import Self

from ..v2.errors import NonFiniteStepError
from ..v2.write.recorder import TraceRecorder


class RecordedRun:
    """At the end of the block the trace is sealed.

    After an error it stays unfinished and readable; where a loss or a gradient was not finite it is sealed.
    """

    def __init__(self, recorder: TraceRecorder, *others: TraceRecorder) -> None:
        self._recorder, self._recorders = recorder, (recorder, *others)

    @property
    def steps(self) -> int:
        """Number of steps recorded."""
        return self._recorder.steps

    def seal(self) -> None:
        """End the trace and give it its final name; nothing is recorded any more."""
        self._detach()
        for recorder in self._recorders:
            recorder.seal()

    def close(self) -> None:
        """Leave the trace unfinished, readable as ``PATH.partial``; no effect on a sealed one."""
        self._detach()
        for recorder in self._recorders:
            recorder.close()

    def _detach(self) -> None:
        """Let go of what is recorded."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, NonFiniteStepError):
            self.seal()
        self.close()

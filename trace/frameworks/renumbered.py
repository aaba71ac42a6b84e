"""A trace of a part of a run, whose steps are called by their numbers in the run."""

from collections.abc import Callable
from typing import Any

from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView

_OF_A_STEP = {"calls", "has_keyframe", "keyframe", "keyframe_digests", "ops", "sketch", "tensor"}
"""What is asked of a trace by the number of a step."""


class Renumbered:
    """Reads a trace whose step 0 is step `first` of the run; below 0, what begins after the beginning of the trace."""

    def __init__(self, trace: TraceReader, first: int) -> None:
        self._trace, self._first = trace, first

    def __len__(self) -> int:
        return self._first + len(self._trace)

    def __getitem__(self, step: int) -> StepView:
        return self._trace[step - self._first]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._trace, name)
        return self._moved(found) if name in _OF_A_STEP else found

    def _moved(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any, step: int | None = None, **named: Any) -> Any:
            if step is not None:
                return method(*args, step=step - self._first, **named)
            return method(args[0] - self._first)

        return asked

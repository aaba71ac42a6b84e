"""The trace of one fit: opened before its first step, told of every step, sealed when the fit ends well."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ....base.runs.completed_step import CompletedStep, StepTape
from ....base.runs.keep import Keep
from ....tape import DomainError
from ...step.completed import LaunchRecorder, completed
from ...step.evaluate import NonFiniteError
from ...step.training_step import TrainingStep
from ..recorder_protocol import (
    Recorder,
    RecorderFactory,
    Traced,
    ValidationRecorder,
    is_taken,
    open_recorder,
    resume_recorder,
    taken,
)


class Journal:
    """A context that seals the trace at its end, or at a non-finite value; another error leaves it readable.

    Args:
        trace: what is kept and where, what makes its recorder, or its recorder, begun or resumed by the caller; None
            records nothing.
        loaded: the steps done before, where the run goes on from a checkpoint; else None.
        writes: whether this process writes the trace; of several ranks the others give the first what they have.
    """

    def __init__(self, trace: Traced | None, *, loaded: int | None, writes: bool = True) -> None:
        self._trace, self._loaded, self._writes = trace, loaded, writes
        self._recorder: Recorder | None = None
        self._validated: Mapping[str, float] | None = None
        self.holds_run = trace is not None and loaded is not None
        """Whether there is a trace that holds steps of the run, or will, with which another fit goes on."""
        self.launches: LaunchRecorder | None = None
        """What records steps in the launch that does them, if the recorder can."""

    def begin(self, step: TrainingStep) -> None:
        """Open the trace, or go on with it, unless that was done; ``step`` is in the state before the next step."""
        if self._trace is None or self._recorder is not None:
            return
        if isinstance(self._trace, Recorder):
            self._recorder = self._trace if self._writes else Unwritten()
        else:
            self._recorder = self._opened(self._trace, step)
        self.holds_run = True
        self.launches = self._recorder if isinstance(self._recorder, LaunchRecorder) else None
        if self._validated is not None:
            self.validation(self._validated)

    def room(self, steps: int) -> int:
        """How many steps may be done in one launch when so many are done, at most."""
        return sys.maxsize if self.launches is None else self.launches.room(steps)

    @property
    def takes_launches(self) -> bool:
        """Whether several steps may be done in one launch: nothing is recorded, or what has been begun records them."""
        return self._trace is None or self.launches is not None

    def _opened(self, trace: Keep | RecorderFactory, step: TrainingStep) -> Recorder:
        run = step.as_run()
        if not self._writes:
            return Unwritten()
        if self._loaded:
            if not isinstance(trace, Keep):
                raise DomainError(
                    f"fit: argument 'trace': expected a path for a run that goes on after {self._loaded} steps, got "
                    f"{trace!r}, which begins with the run"
                )
            return resume_recorder(trace, run, steps=self._loaded)
        if is_taken(trace) and not trace.overwrite:
            raise taken("fit", trace)
        if isinstance(trace, Keep) and self._loaded == 0:
            trace = replace(trace, overwrite=True)
        return open_recorder(trace, run)

    def tape(self, number: int, make: Callable[[], StepTape]) -> StepTape | None:
        """The tape of the step about to be done, if the recorder wants it."""
        return make() if self._recorder is not None and self._recorder.wants_tape(number) else None

    def step(self, number: int, step: TrainingStep, batch: Any, tape: StepTape | None) -> None:
        """Record the step just done."""
        if self._recorder is not None:
            self._recorder.step(completed(step, number, batch, tape))

    def validation(self, figures: Mapping[str, float]) -> None:
        """Record what was measured behind the step just done, if the recorder can.

        A run that goes on may begin with one; it is kept until the trace is opened, with the next step or at the end.
        """
        if self._recorder is None:
            self._validated = figures
        elif isinstance(self._recorder, ValidationRecorder):
            self._recorder.validation(figures)

    def commit(self) -> None:
        """Bring what was recorded to the disk."""
        if self._recorder is not None:
            self._recorder.commit()

    def end(self, step: TrainingStep) -> None:
        """Seal the trace; one that an earlier process has sealed stays as it is."""
        if self._trace is None:
            return
        if self._recorder is None and self._loaded is not None and is_taken(self._trace):
            return
        self.begin(step)
        assert self._recorder is not None, "begun"
        self._recorder.seal()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        recorder, self._recorder, self.launches = self._recorder, None, None
        if recorder is None or kind is None:
            return
        if not issubclass(kind, NonFiniteError):
            recorder.close()
            return
        try:
            recorder.seal()
        except BaseException:
            recorder.close()
            raise


class Unwritten:
    """The recorder of a rank that writes no trace."""

    def wants_tape(self, step: int) -> bool:
        """No."""
        return False

    def step(self, done: CompletedStep) -> None:
        """Done with: the first rank records it."""

    def commit(self) -> None:
        """Nothing."""

    def seal(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""

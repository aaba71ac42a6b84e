"""Units of a trace computed again, each from the nearest state that the trace holds before it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from ..replaying.execution import Batches, LossFn
from ..replaying.recomputed import Recomputed, RunMode
from ..replaying.reexecute import FailedError, Model
from ..replaying.replay_state import Rules
from ..v2.check.report import Finding
from ..v2.errors import InvalidTraceError
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from ..v2.verdict import Verdict
from .units import Units


@dataclass(frozen=True, slots=True)
class UnitStretch:
    """Units, in ascending order, that are reached from the KEYFRAME before step `keyframe`."""

    keyframe: int
    units: tuple[int, ...]


def stretches(trace: TraceReader, units: Units, sample: Sequence[int]) -> list[UnitStretch]:
    """The units of a sample by the KEYFRAME from which they are reached, in ascending order."""
    nearest = groupby(sorted(sample), lambda unit: trace.last_keyframe(units[unit].start))
    return [UnitStretch(keyframe, tuple(found)) for keyframe, found in nearest]


class Counted(NamedTuple):
    """How many steps are executed, and how many on the way are only applied, by recorded gradients."""

    executed: int
    applied: int


def counted(trace: TraceReader, units: Units, every: Sequence[UnitStretch]) -> Counted:
    """The steps that are done for some stretches."""
    drawn = sum(len(units[unit]) for stretch in every for unit in stretch.units)
    whole = sum(units[stretch.units[-1]].stop - stretch.keyframe for stretch in every)
    return Counted(drawn, whole - drawn) if trace.header.mode.has_gradients else Counted(whole, 0)


class Examiner:
    """A trace, and the model and batches of its run, for stretches in ascending order."""

    def __init__(
        self,
        trace: TraceReader,
        loss_fn: LossFn,
        batches: Batches,
        rules: Rules,
        mode: RunMode = "replay",
        counted: Counted | None = None,
    ) -> None:
        self._trace = trace
        self._model = Model(trace, loss_fn, batches)
        executed, applied = counted or Counted(0, 0)
        way = {"executed": executed, "applied": applied}
        self._run = Recomputed(trace, self._model, rules, _other, mode=mode, **way)
        self._next = 0  # the step whose batch comes next
        self._broken: Finding | None = None

    def examined(self, units: Units, stretch: UnitStretch) -> Iterator[tuple[int, Finding | None]]:
        """Each unit with what is found first on the way to it or in it; None: all is as recorded.

        What is found does not depend on which other units are examined.
        """
        self._broken = None
        try:
            self._run.begin(stretch.keyframe)
        except (FailedError, InvalidTraceError, MemoryError) as error:
            self._broken = _finding(error, stretch.keyframe)
        for unit in stretch.units:
            yield unit, self._broken or self._found(units[unit])

    def _found(self, unit: range) -> Finding | None:
        """Go on to the end of a unit: what is found first, if anything; `_broken` keeps it from going further."""
        found: Finding | None = None
        records = self._run.records
        try:
            self._go_to(unit.start if records else self._run.next)
        except FailedError as failed:
            self._broken = failed.finding
        if self._broken is None:
            self._go_through(range(self._run.next, unit.start if records else unit.stop), by_model=not records)
        while self._run.next < unit.stop and self._broken is None:
            view = self._trace[self._run.next]
            found = self._one(view, executes=found is None) or found
        return found or self._broken or self._without_end(unit)

    def _go_through(self, steps: range, *, by_model: bool) -> None:
        """Do steps, many in one launch. Without recorded gradients what is found in them ends the way."""
        try:
            self._run.through(self._views(steps, taken=by_model), by_model=by_model)
        except (FailedError, InvalidTraceError, MemoryError) as error:
            self._broken = _finding(error, self._run.next)

    def _views(self, steps: range, *, taken: bool) -> Iterator[StepView]:
        """Steps, whose batches are taken or not."""
        for step in steps:
            self._next = step + 1 if taken else self._next
            yield self._trace[step]

    def _go_to(self, step: int) -> None:
        """Let the batch of a step come next, which is none of those that have been."""
        self._model.pass_over(step - self._next)
        self._next = step

    def _one(self, view: StepView, *, executes: bool) -> Finding | None:
        """One step. What its execution finds ends the way only where nothing recorded can take its place."""
        found: Finding | None = None
        try:
            if executes:
                found = self._executed(view)
            if not executes or found is not None:
                self._run.step(view)
        except (FailedError, InvalidTraceError, MemoryError) as error:
            self._broken = _finding(error, view.step)
        return found

    def _executed(self, view: StepView) -> Finding | None:
        """Do a step by the model: what is found before its update, of a trace that has gradients."""
        self._next += 1
        try:
            self._run.step(view, self._model.take(view))
        except FailedError as failed:
            if self._run.next != view.step:
                raise
            return failed.finding
        return None

    def _without_end(self, unit: range) -> Finding | None:
        """The last unit may end at a state of which no digest is recorded."""
        if self._run.digests_after(self._trace[unit[-1]]) is not None:
            return None
        text = f"no state is recorded after steps {unit.start} to {unit[-1]}: their updates are not proven"
        return Finding(Verdict.UNPROVEN, text, unit[-1])


def _other(view: StepView, name: str) -> str:
    return "the recorded state is not what the rule makes of the gradients"


def _finding(error: FailedError | InvalidTraceError | MemoryError, step: int) -> Finding:
    if isinstance(error, FailedError):
        return error.finding
    if isinstance(error, InvalidTraceError):
        return Finding(error.verdict, error.text, step)
    return Finding(Verdict.UNPROVEN, "there is not enough memory to recompute the step", step)

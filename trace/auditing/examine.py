"""Units of a trace computed again, each from the nearest state that the trace holds before it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..replaying.execution import Batches, LossFn
from ..replaying.reexecute import FailedError, Made, Model, advance, compare_corrections
from ..replaying.replay_state import ReplayState, Rules
from ..v2.check.report import Finding
from ..v2.errors import InvalidTraceError
from ..v2.read.reader import StepView, Trace
from ..v2.verdict import Verdict
from .units import Units


@dataclass(frozen=True, slots=True)
class UnitStretch:
    """Units, in ascending order, that are reached from the KEYFRAME before step `keyframe`."""

    keyframe: int
    units: tuple[int, ...]


def stretches(trace: Trace, units: Units, sample: Sequence[int]) -> list[UnitStretch]:
    """The units of a sample by the KEYFRAME from which they are reached, in ascending order."""
    nearest = groupby(sorted(sample), lambda unit: trace.last_keyframe(units[unit].start))
    return [UnitStretch(keyframe, tuple(found)) for keyframe, found in nearest]


def computed(trace: Trace, units: Units, stretch: UnitStretch) -> int:
    """How many steps are executed for a stretch; where gradients are recorded, those on the way are only applied."""
    if trace.header.mode.has_gradients:
        return sum(len(units[unit]) for unit in stretch.units)
    return units[stretch.units[-1]].stop - stretch.keyframe


class Examiner:
    """A trace, and the model and batches of its run, for stretches in ascending order."""

    def __init__(self, trace: Trace, loss_fn: LossFn, batches: Batches, rules: Rules) -> None:
        self._trace, self._rules = trace, rules
        self._model = Model(trace, loss_fn, batches)
        self._next = 0  # the step whose batch comes next

    def examined(self, units: Units, stretch: UnitStretch) -> Iterator[tuple[int, Finding | None]]:
        """Each unit with what is found first on the way to it or in it; None: all is as recorded.

        What is found does not depend on which other units are examined.
        """
        way = _Way(self, stretch.keyframe)
        for unit in stretch.units:
            yield unit, way.finding(units[unit])

    @property
    def trace(self) -> Trace:
        """The trace."""
        return self._trace

    @property
    def model(self) -> Model:
        """The model, whose batches stand where `go_to` or the last step left them."""
        return self._model

    def begin(self, keyframe: int) -> ReplayState:
        """The state before a step, as its KEYFRAME holds it."""
        return ReplayState(self._trace, self._trace.keyframe(keyframe), self._rules)

    def go_to(self, step: int) -> None:
        """Let the batch of a step come next, which is none of those that have been."""
        self._model.pass_over(step - self._next)
        self._next = step

    def execute(self, view: StepView, state: ReplayState, recorded: Made) -> Made:
        """Compute a step again and hold it against what is recorded: gradients and buffers. Raises FailedError."""
        self._next += 1
        batch = self._model.next_batch(view)
        done = self._model.execute(view, state, batch, recorded, 0)
        return done.grads, done.buffers


class _Way:
    """A state that is carried from a KEYFRAME on; `_broken` is what keeps it from going further."""

    def __init__(self, examiner: Examiner, keyframe: int) -> None:
        self._examiner, self._trace = examiner, examiner.trace
        self._recorded = self._trace.header.mode.has_gradients
        self._step = keyframe
        self._broken: Finding | None = None
        try:
            self._state = examiner.begin(keyframe)
            if keyframe:
                self._compare_state(self._trace[keyframe - 1], "the keyframe behind it holds another state")
        except (FailedError, InvalidTraceError, MemoryError) as error:
            self._broken = _finding(error, keyframe)

    def finding(self, unit: range) -> Finding | None:
        """Go on to the end of a unit: what is found first, if anything."""
        if self._broken is not None:
            return self._broken
        found: Finding | None = None
        try:
            self._examiner.go_to(unit.start if self._recorded else self._step)
        except FailedError as failed:
            self._broken = failed.finding
        while self._step < unit.stop and self._broken is None:
            executes = found is None and (not self._recorded or self._step in unit)
            found = self._one(self._trace[self._step], executes=executes) or found
            self._step += 1
        return found or self._broken or self._without_end(unit)

    def _one(self, view: StepView, *, executes: bool) -> Finding | None:
        """One step. What its execution finds ends the way only where nothing recorded can take its place."""
        found: Finding | None = None
        try:
            made: Made = (view.gradients(), view.buffers()) if self._recorded else ({}, {})
            if executes:
                try:
                    computed_now = self._examiner.execute(view, self._state, made)
                    made = made if self._recorded else computed_now
                except FailedError as failed:
                    found = failed.finding
                    if not self._recorded:
                        raise
            advance(self._state, view, *made)
            compare_corrections(self._state, view)
            self._compare_state(view, "the recorded state is not what the rule makes of the gradients")
        except (FailedError, InvalidTraceError, MemoryError) as error:
            self._broken = _finding(error, view.step)
        return found

    def _compare_state(self, view: StepView, text: str) -> None:
        """Hold the state after a step against its digests, where there are any."""
        digests = self._digests_after(view)
        name = None if digests is None else self._state.first_other(digests)
        if name is not None:
            raise FailedError(Verdict.UPDATE, text, view.step, name)

    def _digests_after(self, view: StepView) -> Sequence[bytes] | None:
        """Those of the STEP, or behind the last step those of the SEAL."""
        if view.root is not None:
            return view.record.state_in_order(self._trace.layout)
        seal = self._trace.seal
        is_last = view.step == len(self._trace) - 1
        return seal.final[:-1] if is_last and seal is not None and seal.final else None

    def _without_end(self, unit: range) -> Finding | None:
        """The last unit may end at a state of which no digest is recorded."""
        if self._digests_after(self._trace[unit[-1]]) is not None:
            return None
        text = f"no state is recorded after steps {unit.start} to {unit[-1]}: their updates are not proven"
        return Finding(Verdict.UNPROVEN, text, unit[-1])


def _finding(error: FailedError | InvalidTraceError | MemoryError, step: int) -> Finding:
    if isinstance(error, FailedError):
        return error.finding
    if isinstance(error, InvalidTraceError):
        return Finding(error.verdict, error.text, step)
    return Finding(Verdict.UNPROVEN, "there is not enough memory to compute the step again", step)

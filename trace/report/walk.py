"""A run step by step: the gradients of each step and the state after it, read or computed again."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...base.arrays import Arrays
from ...tape import NUMERICS
from ..replaying.execution import Batches, LossFn
from ..replaying.recomputed import Recomputed, RunMode
from ..replaying.reexecute import FailedError, Model
from ..replaying.replay_state import Rules
from ..v2.errors import InvalidTraceError
from ..v2.format.constants import TensorRole
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView


@dataclass(frozen=True, slots=True)
class Walked:
    """A step. `grads` as the optimizer consumed them, none where they are not known; so are `before` and `after`.

    `before` holds the params alone; `after` are the tensors of the walk itself, which the next step changes.
    """

    view: StepView
    grads: Arrays
    before: Arrays
    after: Arrays


@dataclass
class RunWalk:
    """All steps of a trace in their order. `notes` say what could not be known, and from which step on."""

    trace: TraceReader
    model: Model | None = None
    rules: Rules = ()
    mode: RunMode = "replay"
    notes: list[str] = field(default_factory=list[str])

    def __iter__(self) -> Iterator[Walked]:
        try:
            yield from self._steps()
        except InvalidTraceError as error:
            self.notes.append(f"the file is damaged: {error}")

    def _steps(self) -> Iterator[Walked]:
        run, records = self._begin(), self.trace.header.mode.has_gradients
        for view in self.trace:
            if run is not None:
                before = {name: array.copy() for name, array in run.state.of_role(TensorRole.PARAM).items()}
                try:
                    run.step(view, None if self.model is None else self.model.take(view))
                    yield Walked(view, run.grads, before, run.state.values)
                    continue
                except FailedError as failed:
                    self.notes.append(f"not known from step {view.step} on: {failed.finding}")
                    run = None
            yield Walked(view, view.gradients() if records else {}, {}, {})

    def _begin(self) -> Recomputed | None:
        """The state before step 0; None where it cannot be carried on."""
        mode, steps = self.trace.header.mode, len(self.trace)
        if not mode.has_gradients and self.model is None:
            self.notes.append(
                "gradients and weights are not recorded: record the run with record='grads', or give its model"
            )
            return None
        if not mode.has_keyframes or not self.trace.has_keyframe(0):
            return None
        if self.trace.header.numerics != NUMERICS:
            self.notes.append(
                f"weights are not computed: recorded under numerics version {self.trace.header.numerics}, "
                f"this library has {NUMERICS}"
            )
            return None
        way = {"applied" if self.model is None else "executed": steps}
        run = Recomputed(self.trace, self.model, self.rules, _other, mode=self.mode, **way)
        run.begin(0)
        return run


def _other(view: StepView, name: str) -> str:
    return "the recorded state is not what the rule makes of the gradients"


def walk(
    trace: TraceReader,
    loss_fn: LossFn | None = None,
    batches: Batches | None = None,
    *,
    rules: Rules = (),
    mode: RunMode = "replay",
) -> RunWalk:
    """The steps of a trace; the model computes gradients again where the trace records none."""
    if loss_fn is None or batches is None or trace.header.mode.has_gradients:
        return RunWalk(trace, None, rules, mode)
    return RunWalk(trace, Model(trace, loss_fn, batches), rules, mode)

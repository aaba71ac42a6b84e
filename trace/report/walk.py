"""A run step by step: the gradients of each step and the state after it, read or computed again."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...base.arrays import Array, Arrays
from ...tape import NUMERICS
from ..replaying.execution import Batches, LossFn
from ..replaying.reexecute import FailedError, Model, advance
from ..replaying.replay_state import ReplayState, Rules
from ..v2.errors import InvalidTraceError
from ..v2.format.constants import TensorRole
from ..v2.read.reader import StepView, Trace


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

    trace: Trace
    model: Model | None = None
    rules: Rules = ()
    notes: list[str] = field(default_factory=list[str])

    def __iter__(self) -> Iterator[Walked]:
        try:
            yield from self._steps()
        except InvalidTraceError as error:
            self.notes.append(f"the file is damaged: {error}")

    def _steps(self) -> Iterator[Walked]:
        state = self._begin()
        for view in self.trace:
            grads, buffers = dict[str, Array](), dict[str, Array]()
            try:
                grads, buffers = self._made(view, state)
                before = {} if state is None else _copied(state)
                if state is not None and self._has_gradients:
                    advance(state, view, grads, buffers)
                yield Walked(view, grads, before, {} if state is None else state.values)
            except FailedError as failed:
                self.notes.append(f"not known from step {view.step} on: {failed.finding}")
                state = None
                yield Walked(view, grads, {}, {})

    @property
    def _has_gradients(self) -> bool:
        return self.trace.header.mode.has_gradients or self.model is not None

    def _begin(self) -> ReplayState | None:
        """The state before step 0; None where it cannot be carried on."""
        mode = self.trace.header.mode
        if not self._has_gradients:
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
        return ReplayState(self.trace, self.trace.keyframe(0), self.rules)

    def _made(self, view: StepView, state: ReplayState | None) -> tuple[dict[str, Array], dict[str, Array]]:
        if self.trace.header.mode.has_gradients:
            return view.gradients(), view.buffers()
        if self.model is None or state is None:
            return {}, {}
        done = self.model.execute(view, state, self.model.next_batch(view), ({}, {}), 0)
        return done.grads, done.buffers


def walk(trace: Trace, loss_fn: LossFn | None = None, batches: Batches | None = None, *, rules: Rules = ()) -> RunWalk:
    """The steps of a trace; the model computes gradients again where the trace records none."""
    if loss_fn is None or batches is None or trace.header.mode.has_gradients:
        return RunWalk(trace, None, rules)
    return RunWalk(trace, Model(trace, loss_fn, batches), rules)


def _copied(state: ReplayState) -> dict[str, Array]:
    return {name: array.copy() for name, array in state.of_role(TensorRole.PARAM).items()}

"""Steps of a recorded run computed again in turn, each held against all that is recorded of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from ...base.arrays import Array
from ...base.errors import DomainError
from ...runtime.ir.step_tape import Choose, Chosen, chosen_of
from ...tape import NUMERICS
from ..v2.check.difference import first_difference
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Batch
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from ..v2.verdict import Verdict
from .applied_steps import AppliedSteps
from .captured_steps import STEPS, CapturedSteps, Done, are_many, together
from .reexecute import Blaming, Executed, FailedError, Made, Model
from .replay_state import ReplayState, Rules, UnknownRuleError

RunMode: TypeAlias = Literal["replay", "eager"]
"""How steps are done again, with the same bits: prepared, or all of them op by op."""

WORTH = 32
"""Steps from which on it is worth it to prepare them; fewer are done op by op."""

_KEYFRAME = "the keyframe behind it holds another state"


def require_mode(command: str, mode: str) -> None:
    """Raise DomainError for another mode."""
    if mode not in get_args(RunMode):
        raise DomainError(f"{command}: mode: expected 'replay' or 'eager', got {mode!r}")


class Recomputed:
    """The state of a run, carried on from a KEYFRAME: by the model, or by recorded gradients.

    Many steps are prepared: those of a model captured, those of gradients as one update. Where these do not give all
    that is recorded, op by op it is said what differs. A loss function with a state of its own, as only runs of the
    mode "eager" may have, needs that mode here too.

    Args:
        model: for the steps that are done with their batch.
        rules: classes that users wrote.
        other: what to say of a step whose state is not the recorded one, of which the name of a tensor is given.
        executed, applied: how many steps are to be done by the model, and by recorded gradients.
        ulp_tol: elementwise tolerance where values are recorded; digests have none.
    """

    def __init__(
        self,
        trace: TraceReader,
        model: Model | None,
        rules: Rules,
        other: Callable[[StepView, str], str],
        *,
        mode: RunMode = "replay",
        executed: int = 0,
        applied: int = 0,
        ulp_tol: int = 0,
    ) -> None:
        self._trace, self._model, self._rules, self._other, self._ulp_tol = trace, model, rules, other, ulp_tol
        self.records = trace.header.mode.has_gradients
        self.executes = model is not None and trace.header.numerics == NUMERICS
        self.updates = self.records or self.executes
        prepares = mode == "replay" and not ulp_tol
        self._captures, self._applies = prepares and executed >= WORTH, prepares and applied >= WORTH
        self._captured: CapturedSteps | None = None
        self._applied: AppliedSteps | None = None
        self.state = ReplayState(trace, {}, rules)
        self.next = 0
        """The step before which the state is."""
        self.checked = 0
        """Behind so many steps a state was last found to be the recorded one."""
        self.grads: Mapping[str, Array] = {}
        """Those of the last step as the optimizer consumed them: valid until the next one."""

    def begin(self, keyframe: int) -> None:
        """Go on from the KEYFRAME before a step.

        Raises:
            FailedError: it is not the state that was recorded behind the step before it.
            InvalidTraceError, NotRecordedError: it cannot be read.
        """
        values = self._trace.keyframe(keyframe)
        if self.state.values:
            self.state.put(values)
        else:
            self.state.values = values
        self.next = self.checked = keyframe
        if keyframe:
            self._compare_digests(self._trace[keyframe - 1], lambda view, name: _KEYFRAME)
        model = self._model
        if self._captures and model is not None and self.executes:
            self._captured = self._captured or CapturedSteps(self._trace, model.loss_fn, self.state, self._rules)
            self._captured.forget()
        if self._applies and self.records:
            self._applied = self._applied or AppliedSteps(self._trace, self.state, self._rules)

    def step(self, view: StepView, batch: tuple[Batch, ...] | None = None, choose: Choose | None = None) -> Chosen:
        """Do the next step: by the model, if micro-batches are given, else by the gradients that are recorded.

        What the model computes in it can be asked for: values and gradients, as they were before the update.

        Raises:
            FailedError: something is not what is recorded of it; as long as that is before the update, `next` stays.
            InvalidTraceError: the file is damaged there.
        """
        if batch is None or not self.executes:
            if batch is not None and self._model is not None:
                self._model.require_recorded(view, batch)
            self._apply([view])
            return []
        if self._captured is not None:
            return self._capture(self._captured, view, batch, choose)
        return self._op_by_op(view, batch, choose)

    def through(self, views: Iterable[StepView], *, by_model: bool) -> None:
        """Do steps in turn, many in one launch where they can be. Raises as `step`, behind those before it."""
        model = self._model if by_model else None
        if model is None:
            for found in together(views, lambda found: len(found) == STEPS):
                while found:
                    found = found[self._apply(found) :]
            return
        for stretch in together((self._taken(model, view) for view in views), self._is_enough):
            while stretch:
                stretch = stretch[self._several(stretch) :]

    def _taken(self, model: Model, view: StepView) -> Done:
        """A step with its micro-batches, of which copies are kept where it may be launched."""
        batch = model.take(view)
        return Done(view, batch, 0) if self._captured is None else Done.own(view, batch)

    def _is_enough(self, found: list[Done]) -> bool:
        """Whether no more steps are to be taken together."""
        return self._captured is None or are_many(found)

    def _several(self, stretch: Sequence[Done]) -> int:
        """Do the first of some steps by the model, many in one launch where they can be: how many."""
        captured, first = self._captured, stretch[0]
        if captured is None:
            self.step(first.view, first.batch)
            return 1
        done = captured.next(stretch)
        self._judge(captured, stretch[done.steps - 1].view, None, agrees=done.agree)
        return done.steps

    def execute(self, view: StepView, batch: tuple[Batch, ...], recorded: Made | None = None) -> Executed:
        """Compute the next step op by op up to its update; ``recorded`` are its gradients and buffers, if read before.

        Raises as `step`.
        """
        assert self._model is not None
        self._model.require_recorded(view, batch)
        return self._model.execute(view, self.state, batch, recorded or self._recorded(view), self._ulp_tol)

    # ------------------------------------------------------------------ prepared

    def _capture(
        self, captured: CapturedSteps, view: StepView, batch: tuple[Batch, ...], choose: Choose | None
    ) -> Chosen:
        agrees = captured.agrees(view, batch, choose)
        return self._judge(captured, view, choose, agrees=agrees)

    def _judge(self, captured: CapturedSteps, last: StepView, choose: Choose | None, *, agrees: bool) -> Chosen:
        """Steps up to one were done; if they are not all as recorded, say op by op what differs."""
        if agrees and self._ends_as_recorded(last):
            assert self._model is not None
            self._model.agreed = True
            self.grads = captured.grads
            self._as_recorded(last)
            return captured.chosen
        *before, ended = captured.back()
        self._captured = None
        for done in before:
            self._op_by_op(done.view, done.batch)
        chosen = self._op_by_op(ended.view, ended.batch, choose)
        self._captures = False  # op by op they are as recorded
        return chosen

    def _ends_as_recorded(self, view: StepView) -> bool:
        """Of the last step, whose front may have no digests of the state, those of the SEAL."""
        if view.step != len(self._trace) - 1 or self._trace.layout.due(view.step):
            return True
        digests = self.digests_after(view)
        return digests is None or self.state.first_other(digests) is None

    def _apply(self, views: Sequence[StepView]) -> int:
        """Do the first of some steps by the gradients that are recorded: how many."""
        applied, first = self._applied, views[0]
        found = None if applied is None else applied.several(views)
        if self._captured is not None:
            self._captured.forget()
        if applied is None or found is None:
            self._op_by_op(first, None)
            if applied is not None:
                applied.prepare(first)
            return 1
        *before, last = views[: found.steps]
        if before:
            self._as_recorded(before[-1])
        agree = found.agree and self._ends_as_recorded(last)
        if not agree:
            self._recorded(last)  # which raises where it is not what its digests say
        self.grads, self.next = applied.grads, last.step + 1
        if agree:
            self._as_recorded(last)
        else:
            self._compare(last)
        return found.steps

    # ------------------------------------------------------------------ op by op

    def _recorded(self, view: StepView) -> Made:
        """The gradients and buffers that the trace holds."""
        return (view.gradients(), view.buffers()) if self.records else ({}, {})

    def _op_by_op(self, view: StepView, batch: tuple[Batch, ...] | None, choose: Choose | None = None) -> Chosen:
        made, chosen = self._recorded(view), Chosen()
        if batch is not None:
            executed = self.execute(view, batch, made)
            made = made if self.records else (executed.grads, executed.buffers)
            if choose is not None:
                chosen = chosen_of(executed.computed.passes, self.state.of_role(TensorRole.PARAM), choose)
        if self.updates:
            self._advance(view, *made)
            self._compare(view)
        return chosen

    def _advance(self, view: StepView, grads: Mapping[str, Array], buffers: Mapping[str, Array]) -> None:
        self.grads = grads
        with Blaming(Verdict.UPDATE, "the rule refuses the recorded step", view.step):
            try:
                self.state.advance(view, grads, buffers)
            except UnknownRuleError as error:
                raise FailedError(Verdict.UNPROVEN, str(error), view.step) from error
        self.next = view.step + 1

    # ------------------------------------------------------------------ held against what is recorded

    def _as_recorded(self, view: StepView) -> None:
        """The step was found to be as recorded, with the state behind it, if that is recorded."""
        self.next = view.step + 1
        if self._trace.layout.due(view.step) or self.digests_after(view) is not None:
            self.checked = self.next

    def _compare(self, view: StepView) -> None:
        if self._ulp_tol:
            self._compare_values(view)
            return
        self._compare_corrections(view)
        self._compare_digests(view, self._other)

    def _compare_corrections(self, view: StepView) -> None:
        recomputed = self.state.corrections()
        if recomputed is None:
            text = f"bias corrections: recorded {view.corrections}, and no tensor 'corrections' to hold them"
            raise FailedError(Verdict.UPDATE, text, view.step)
        if not np.array_equal(recomputed, view.corrections, equal_nan=True):
            text = f"bias corrections: recorded {view.corrections}, recomputed {recomputed}"
            raise FailedError(Verdict.UPDATE, text, view.step)

    def _compare_digests(self, view: StepView, other: Callable[[StepView, str], str]) -> None:
        """Hold the state after a step against its digests, where there are any."""
        digests = self.digests_after(view)
        if digests is None:
            return
        name = self.state.first_other(digests)
        if name is not None:
            raise FailedError(Verdict.UPDATE, other(view, name), view.step, name)
        self.checked = view.step + 1

    def digests_after(self, view: StepView) -> Sequence[bytes] | None:
        """Those of the state after a step: of the STEP, or, behind the last, of the SEAL; None where none are due."""
        if self._trace.layout.due(view.step):
            return view.record.state_in_order(self._trace.layout)
        seal = self._trace.seal
        is_last = view.step == len(self._trace) - 1
        return seal.final[:-1] if is_last and seal is not None and seal.final else None

    def _compare_values(self, view: StepView) -> None:
        """Compare where the whole state is recorded, and go on from what is recorded."""
        trace, step = self._trace, view.step
        recorded = trace.keyframe(step + 1) if trace.has_keyframe(step + 1) else view.after()
        if len(recorded) < len(self.state.values):
            return
        for name, found in self.state.values.items():
            difference = first_difference(recorded[name], found, self._ulp_tol)
            if difference is not None:
                rules = ", ".join(group.rule for group in trace.schema.groups)
                text = f"more than {self._ulp_tol} ULP from what {rules} makes; {difference}"
                raise FailedError(Verdict.UPDATE, text, step, name)
        self.state.put(recorded)
        self.checked = step + 1

"""The state of a run, recomputed from a keyframe by the rules the schema names."""

import os
from collections.abc import Mapping

from ... import runtime
from ...arrays import Array
from ..v2.format.constants import TensorRole
from ..v2.format.schema import CLIPPING, Group
from ..v2.read.reader import StepView, Trace, open_trace


class UnknownRuleError(LookupError):
    """The trace was recorded with an optimizer rule that this library does not have."""


class ReplayState:
    """Every tensor of a trace before step `keyframe`; `advance` applies one step in place.

    `values`: name → array, in the order of the schema.
    """

    def __init__(self, trace: Trace, keyframe: int) -> None:
        self._trace = trace
        self.values = trace.keyframe(keyframe)
        self._tensors = trace.schema.tensors

    def of_role(self, role: TensorRole) -> dict[str, Array]:
        """The tensors of one role by name: the arrays themselves."""
        return {t.name: self.values[t.name] for t in self._tensors if t.role is role}

    def advance(self, view: StepView, grads: Mapping[str, Array], buffers: Mapping[str, Array]) -> None:
        """Apply the update of one step with its recorded hyperparameters, and take over the buffers after it.

        Raises:
            UnknownRuleError: a rule is not known.
            DgrrError: a rule refuses what the trace gives it.
        """
        start = 0
        for group in self._trace.schema.groups:
            stop = start + len(group.hyperparameters)
            hyper = dict(zip(group.hyperparameters, view.record.hyper[start:stop], strict=True))
            if group != CLIPPING:  # the gradients are those that came out of it
                self._apply(group, hyper, grads)
            start = stop
        self.values |= buffers

    def _apply(self, group: Group, hyper: Mapping[str, float], grads: Mapping[str, Array]) -> None:
        try:
            rule = runtime.make_rule(group.rule, hyper)
        except KeyError:
            raise UnknownRuleError(f"the rule '{group.rule}' is not known to this library") from None
        specs = [self._tensors[i] for i in group.tensors]
        params = {t.name: self.values[t.name] for t in specs if t.role is TensorRole.PARAM}
        state = {t.name: self.values[t.name] for t in specs if t.role is TensorRole.STATE}
        rule.step(params, {name: g for name, g in grads.items() if name in params}, state)

    def corrections(self) -> tuple[float, ...]:
        """The bias corrections of all groups as the state holds them, for groups that record any."""
        return tuple(
            float(value)
            for group in self._trace.schema.groups
            if group.corrections
            for value in self.values["corrections"].ravel()
        )


def state_after(path: str | os.PathLike[str], step: int) -> dict[str, Array]:
    """Every param and optimizer state after `step`, recomputed from the last keyframe before it.

    Raises:
        NotRecordedError: the trace records no gradients.
        IndexError: there is no such step.
        UnknownRuleError, TraceFileError: the trace cannot be recomputed or read.
    """
    with open_trace(path, mode="tolerate_tail") as trace:
        last = trace[step].step
        state = ReplayState(trace, trace.last_keyframe(last))
        for i in range(trace.last_keyframe(last), last + 1):
            view = trace[i]
            state.advance(view, view.gradients(), view.buffers())
    return state.values

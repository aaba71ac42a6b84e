"""The steps of a run in turn, each with what a condition names of it: read, or done again."""

from ...runtime.ir.step_tape import Chosen
from ..replaying.execution import Batches, LossFn
from ..replaying.recomputed import Recomputed, RunMode
from ..replaying.reexecute import Model
from ..replaying.replay_state import Rules
from ..replaying.travel import require_numerics, require_state
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from .bound_condition import BoundCondition, Found, float64
from .nodes import NodesOf, Trial, WatchedNode

Trials = list[tuple[Found, WatchedNode | None]]
"""The values of a step that a condition is tried with, and the node that they are of."""

_OTHER = "the state rebuilt from the keyframe before step {} is another one"


class WatchedSteps:
    """Goes through the steps of a trace once: by reading them, by its gradients, or by the model.

    Raises:
        ConditionError: the model is needed and not given.
        NotRecordedError: the trace holds no state to begin with.
    """

    def __init__(
        self,
        trace: TraceReader,
        bound: BoundCondition,
        loss_fn: LossFn | None,
        batches: Batches | None,
        rules: Rules,
        mode: RunMode,
    ) -> None:
        self._trace, self._bound, self._rules = trace, bound, rules
        self._mode: RunMode = mode
        self._model: Model | None = None
        if bound.executes:
            if loss_fn is None or batches is None:
                raise bound.without_model()
            self._model = Model(trace, loss_fn, batches)
        if not bound.reads:
            require_state("trace.when", trace)
        self._choose = NodesOf(bound.condition.error, bound.nodes, bound.known) if bound.nodes else None
        self._run: Recomputed | None = None

    def begin(self, first: int) -> None:
        """Go to the state before a step. Raises FailedError, InvalidTraceError."""
        if self._bound.reads:
            return
        trace, model = self._trace, self._model
        if model is not None:
            require_numerics(trace, first)
        keyframe = trace.last_keyframe(first)
        ahead = {"applied" if model is None else "executed": len(trace) - keyframe}
        text = _OTHER.format(keyframe)
        self._run = Recomputed(trace, model, self._rules, lambda view, name: text, mode=self._mode, **ahead)
        if model is not None:
            model.pass_over(keyframe)
        self._run.begin(keyframe)
        self._run.through(map(trace.__getitem__, range(keyframe, first)), by_model=model is not None)

    def step(self, view: StepView, *, looked: bool) -> Trials:
        """The trials of the next step, where it is to be looked at. Raises FailedError, InvalidTraceError."""
        bound, run = self._bound, self._run
        if run is None:
            return [(bound.recorded(view), None)] if looked else []
        batch = None if self._model is None else self._model.take(view)
        if not looked:
            run.step(view, batch)
            return []
        before = bound.before(run.state.values)
        chosen = run.step(view, batch, self._choose)
        tensors = bound.after(before, run.grads, run.state.values)
        return [(tensors, None)] if self._choose is None else _by_trial(tensors, chosen)


def _by_trial(tensors: Found, chosen: Chosen) -> Trials:
    """The values of each trial, with those that all share."""
    found: dict[int, tuple[Found, WatchedNode]] = {}
    for one, array in chosen:
        assert isinstance(one, Trial)
        values, _ = found.setdefault(one.trial, (dict(tensors), one.about))
        if array is not None:
            values[one.reference] = float64(array)
    return list(found.values())

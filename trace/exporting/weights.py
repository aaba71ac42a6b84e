"""The weights of a run before any of its steps, by time travel."""

from typing import NamedTuple

from ...base.arrays import Array
from ..replaying.execution import Batches, LossFn
from ..replaying.recomputed import RunMode
from ..replaying.replay_state import Rules, state_after
from ..replaying.travel import RebuildError, at
from ..v2.check.report import Finding
from ..v2.errors import NotRecordedError
from ..v2.format.constants import TensorRole
from ..v2.format.digest import tensor_digest
from ..v2.read.reader import TraceReader
from ..v2.verdict import Verdict


class Weights(NamedTuple):
    """Parameters, and what the model keeps besides them."""

    params: dict[str, Array]
    model_state: dict[str, Array]


def weights_before(
    trace: TraceReader,
    step: int,
    loss_fn: LossFn | None = None,
    batches: Batches | None = None,
    *,
    mode: RunMode = "replay",
    rules: Rules = (),
) -> Weights:
    """The weights before a step, or, for the number of all steps, behind the last.

    They are read where they are recorded, else made of the recorded gradients, else computed again from the nearest
    keyframe, as `at` does, with the loss function and the batches of the run from its beginning. What is made is held
    against the digests of that state, where these are recorded.

    Raises:
        NotRecordedError: they have to be computed again, and no loss function is given; or the trace holds no state.
        RebuildError: what is made is not what was recorded, or cannot be computed again.
        IndexError: there is no such step.
    """
    if not 0 <= step <= len(trace):
        raise IndexError(f"trace: expected a step from 0 to {len(trace)}, got {step}")
    values = _values(trace, step, loss_fn, batches, mode, rules)
    _compare(trace, step, values)
    roles = {spec.name: spec.role for spec in trace.schema.tensors}
    params, buffers = (
        {name: array for name, array in values.items() if roles[name] is role}
        for role in (TensorRole.PARAM, TensorRole.BUFFER)
    )
    return Weights(params, buffers)


def _values(
    trace: TraceReader, step: int, loss_fn: LossFn | None, batches: Batches | None, mode: RunMode, rules: Rules
) -> dict[str, Array]:
    if trace.header.mode.has_keyframes and trace.has_keyframe(step):
        return trace.keyframe(step)
    if trace.header.mode.has_gradients:
        return state_after(trace.path, step - 1, rules=rules)
    if loss_fn is None or batches is None:
        raise NotRecordedError(
            f"trace: the state before step {step} is not recorded, and neither are gradients: give the loss function "
            "and the batches of the run (--model), from which it is computed again"
        )
    if step < len(trace):
        past = at(trace, step, loss_fn, batches, rules=rules, mode=mode)
        return {**past.params, **past.state, **past.model_state}
    done = at(trace, step - 1, loss_fn, batches, rules=rules, mode=mode).continue_with(steps=1, mode="eager")
    return {**done.params, **done.state, **done.model_state}


def _compare(trace: TraceReader, step: int, values: dict[str, Array]) -> None:
    """Hold the state before a step against the digests of the step before it, or of the SEAL."""
    recorded = trace[step - 1].state_digests if step else {}
    if not recorded and step == len(trace) and trace.seal is not None and trace.seal.final:
        recorded = dict(zip([spec.name for spec in trace.schema.tensors], trace.seal.final, strict=False))
    for name, digest in recorded.items():
        if tensor_digest(trace.header.algorithm, values[name]) != digest:
            text = "the state after it is not what was recorded"
            raise RebuildError(Finding(Verdict.UPDATE, text, step - 1, name))

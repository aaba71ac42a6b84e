"""A trace held against the model as it is now: the run is trained anew up to the first step that differs."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np

from ... import runtime
from ...arrays import Array, Arrays
from ...completed_step import CompletedStep
from ...runtime.ir.step_tape import tape_of
from ...tape import NUMERICS
from ..replaying.execution import Batches, ComputedStep, Execution, LossFn
from ..replaying.replay_state import ReplayState, Rules, by_name
from ..v2.errors import NonFiniteError, NotRecordedError
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Algorithm, Batch
from ..v2.read.reader import StepView, Trace, open_trace
from ..v2.write.open_recorder import open_recorder
from ..v2.write.tensors import schema_of
from .compare import compare
from .policy import Policy, PolicyLike
from .result import Cause, Comparison

_DIGESTS: dict[Algorithm, Literal["xxh3-128", "sha256"]] = {Algorithm.XXH3_128: "xxh3-128", Algorithm.SHA256: "sha256"}
_VALUES = 1 << 30
"""Bytes of elements kept of the last step computed now, beside those that the record mode keeps."""

_NO_MORE = "there are no more batches; give those of the run from its beginning, made anew"


def diff_with_model(
    path: str | os.PathLike[str],
    loss_fn: LossFn,
    batches: Batches,
    *,
    params: Arrays | None = None,
    model_state: Arrays | None = None,
    rules: Rules = (),
    policy: PolicyLike = "bitwise",
) -> Comparison:
    """Train a recorded run anew with the model as it is now, and compare the two.

    The run is computed op by op from its beginning, by the recorded rule and hyperparameters; where no bit may differ
    it ends with the first step that does. In the answer `a` is the trace and `b` the run computed now. `b` is told
    what `a` was, so that causes are data, model, start, gradient, update, numerics or environment.

    Args:
        path: the trace.
        loss_fn: the function the run was trained with, as it is now.
        batches: the batches of the run, from its beginning; iterated again when they end, epoch after epoch.
        params: the start values, for a trace that holds only their digests.
        model_state: the start of the model's state, likewise.
        rules: the classes of rules that are not built in.
        policy: as of `compare`.

    Raises:
        NotRecordedError: the trace does not hold its start values, and `params` are not given.
        ValueError: another policy, or no class of rules.
        UnknownRuleError: the trace names a rule that is neither built in nor given.

    What `loss_fn` raises is not caught. For what is in the file nothing is raised: the verdict says it.
    """
    readable = compare(path, path, policy=policy)
    if not readable:
        return readable
    by_name(rules)
    with open_trace(path, mode="tolerate_tail") as trace, TemporaryDirectory() as folder:
        if not len(trace):
            readable.notes.append("no step is recorded: nothing was computed")
            return readable
        anew = Path(folder) / "anew.dgrr"
        start, execution = _start(trace, params, model_state, rules), Execution(trace, loss_fn, batches)
        ended = _record(trace, anew, start, execution, rules, whole=not Policy.parse(policy).bitwise)
        result = compare(trace, anew, policy=policy)
    result.b = f"{getattr(loss_fn, '__qualname__', type(loss_fn).__name__)}, computed now"
    result.settings.pop("steps", None)  # it ends where it parts
    if result.cause is Cause.LENGTH and ended is not None:
        result.cause, text = ended
        result.sentence = f"step {result.step} is the first that differs: {text}"
    return result


class _Start(NamedTuple):
    """Everything that training changes, before step 0."""

    params: dict[str, Array]
    state: dict[str, Array]
    model_state: dict[str, Array]


def _start(trace: Trace, params: Arrays | None, model_state: Arrays | None, rules: Rules) -> _Start:
    """The beginning as recorded; or as given, with the state that the rule begins with."""
    if params is None:
        return _recorded_start(trace)
    given = {name: np.array(value) for name, value in params.items()}
    rule = runtime.make_rule(trace.schema.groups[-1].rule, _hyper(trace, trace[0]), by_name(rules))
    return _Start(given, rule.init(given), {name: np.array(value) for name, value in (model_state or {}).items()})


def _recorded_start(trace: Trace) -> _Start:
    try:
        values = trace.keyframe(0)
    except NotRecordedError:
        cure = "give params=…, and model_state=… if the model has one"
        raise NotRecordedError(f"diff_with_model: the trace holds no values of its beginning: {cure}") from None
    roles = (TensorRole.PARAM, TensorRole.STATE, TensorRole.BUFFER)
    return _Start(*({t.name: values[t.name] for t in trace.schema.tensors if t.role is role} for role in roles))


def _hyper(trace: Trace, view: StepView) -> dict[str, float]:
    """What the last rule of a run, its optimizer, was told."""
    names = trace.schema.groups[-1].hyperparameters
    return dict(zip(names, view.record.hyper[len(view.record.hyper) - len(names) :], strict=True))


def _record(
    trace: Trace, path: Path, start: _Start, execution: Execution, rules: Rules, *, whole: bool
) -> tuple[Cause, str] | None:
    """Record the run computed now, the whole or up to its first step with another link; why it ended before that."""
    law: dict[str, Any] = {
        "rule": trace.schema.groups[-1].rule,
        "hyperparameters": trace.schema.groups[-1].hyperparameters,
        "clip_value": trace[0].clip_value,
    }
    header = trace.header
    kept: dict[str, Any] = {
        "record": header.mode.name.lower(),
        "record_values": _VALUES,
        "state_every": header.state_every,
        "seed": header.seed,
    }
    digest = _DIGESTS[header.algorithm]
    with open_recorder(path, **start._asdict(), **law, **kept, digest=digest, numerics=NUMERICS) as recorder:
        if schema_of(**start._asdict(), **law) != trace.schema:
            return None
        state = ReplayState(trace, {**start.params, **start.state, **start.model_state}, rules)
        for view in trace:
            batch = execution.take(view)
            if batch is None:
                return Cause.DATA, _NO_MORE
            made = execution.compute(view, state, batch)
            tape = tape_of(made.passes, start.params)  # before the update, which changes the params in place
            try:
                recorder.step(_completed(trace, view, state, execution.recorded(batch), made))
            except NonFiniteError as error:
                return Cause.GRADIENT, f"computed now, {error.tensor!r} is not finite"
            if recorder.link != view.link:
                if not whole or trace.ops(view.step) is not None:
                    recorder.record_tape(tape)
                if not whole:
                    return None
    return None


def _completed(trace: Trace, view: StepView, state: ReplayState, batch: Batch, made: ComputedStep) -> CompletedStep:
    """A step of the run, computed now, applied to the state."""
    state.advance(view, made.grads, made.buffers)
    return CompletedStep(
        step=view.step,
        loss=made.loss,
        hyper=_hyper(trace, view),
        grads=made.grads,
        params=state.of_role(TensorRole.PARAM),
        state=state.of_role(TensorRole.STATE),
        model_state=state.of_role(TensorRole.BUFFER),
        batch=batch,
        clip=made.clip,
        micro_batches=len(made.passes),
    )

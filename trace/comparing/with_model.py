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
from ...tape import NUMERICS, DgrrError
from ..replaying.execution import Batches, CannotExecuteError, ComputedStep, Execution, LossFn
from ..replaying.replay_state import ReplayState, Rules, UnknownRuleError, by_name
from ..v2.errors import NonFiniteError, NotRecordedError
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Algorithm, Batch
from ..v2.format.schema import CLIPPING, Group
from ..v2.read.reader import StepView, Trace, open_trace
from ..v2.verdict import Verdict
from ..v2.write.open_recorder import open_recorder
from ..v2.write.recorder import Recorder
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

    What `loss_fn` raises is not caught. For what is in the file nothing is raised: the verdict says
    it; unproven where a rule is neither built in nor given, or a step cannot be computed from what is recorded.

    >>> from tempfile import TemporaryDirectory
    >>> from dgrr.runtime import SGD, Trainer
    >>> with TemporaryDirectory() as folder:
    ...     path, batches = f"{folder}/run", [np.ones(2)]
    ...     run = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.1), trace=path, record_ops="first")
    ...     _ = run.fit(batches, steps=3)
    ...     found = diff_with_model(path, lambda p, x: (p["w"] - x).sum(), batches)
    >>> found.cause.value, found.step, found.op.node.op, found.op.was.op
    ('model', 0, 'sub', 'mul')
    """
    readable = compare(path, path, policy=policy)
    if not readable:
        return readable
    by_name(rules)
    name = f"{getattr(loss_fn, '__qualname__', type(loss_fn).__name__)}, computed now"
    with open_trace(path, mode="tolerate_tail") as trace, TemporaryDirectory() as folder:
        if not len(trace):
            readable.notes.append("no step is recorded: nothing was computed")
            return readable
        anew = Path(folder) / "anew.dgrr"
        try:
            start, execution = _start(trace, params, model_state, rules), Execution(trace, loss_fn, batches)
            ended = _record(trace, anew, start, execution, rules, whole=not Policy.parse(policy).bitwise)
        except CannotExecuteError as error:
            return Comparison(trace.path, name, Verdict.UNPROVEN, str(error))
        result = compare(trace, anew, policy=policy)
    result.b = name
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
    group = _rule(trace)
    try:
        rule = runtime.make_rule(group.rule, _hyper(trace, trace[0]), by_name(rules))
    except (KeyError, DgrrError) as error:
        raise CannotExecuteError(f"the rule '{group.rule}' cannot be made: {error}") from error
    return _Start(given, rule.init(given), {name: np.array(value) for name, value in (model_state or {}).items()})


def _recorded_start(trace: Trace) -> _Start:
    try:
        values = trace.keyframe(0)
    except NotRecordedError:
        cure = "give params=…, and model_state=… if the model has one"
        raise NotRecordedError(f"diff_with_model: the trace holds no values of its beginning: {cure}") from None
    roles = (TensorRole.PARAM, TensorRole.STATE, TensorRole.BUFFER)
    return _Start(*({t.name: values[t.name] for t in trace.schema.tensors if t.role is role} for role in roles))


def _rule(trace: Trace) -> Group:
    """The one group of the schema whose rule updates the params."""
    groups = [group for group in trace.schema.groups if group != CLIPPING]
    if len(groups) != 1:
        raise CannotExecuteError(f"the trace has {len(groups)} rules for its params; one alone can be computed anew")
    return groups[0]


def _hyper(trace: Trace, view: StepView) -> dict[str, float]:
    """What that rule was told."""
    names = _rule(trace).hyperparameters
    return dict(zip(names, view.record.hyper[len(view.record.hyper) - len(names) :], strict=True))


def _record(
    trace: Trace, path: Path, start: _Start, execution: Execution, rules: Rules, *, whole: bool
) -> tuple[Cause, str] | None:
    """Record the run computed now, the whole or up to its first step with another link; why it ended before that."""
    header, group = trace.header, _rule(trace)
    law: dict[str, Any] = {
        "rule": group.rule,
        "hyperparameters": group.hyperparameters,
        "clip_value": trace[0].clip_value,
    }
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
        return _train(trace, recorder, execution, state, whole=whole)


def _train(
    trace: Trace, recorder: Recorder, execution: Execution, state: ReplayState, *, whole: bool
) -> tuple[Cause, str] | None:
    params = [t.name for t in trace.schema.tensors if t.role is TensorRole.PARAM]
    for view in trace:
        batch = execution.take(view)
        if batch is None:
            return Cause.DATA, _NO_MORE
        made = execution.compute(view, state, batch)
        try:
            recorder.step(_completed(trace, view, state, execution.recorded(batch), made))
        except NonFiniteError as error:
            return Cause.GRADIENT, f"computed now, {error.tensor!r} is not finite"
        if recorder.link != view.link:
            if not whole or trace.ops(view.step) is not None:
                recorder.record_tape(tape_of(made.passes, params))
            if not whole:
                return None
    return None


def _completed(trace: Trace, view: StepView, state: ReplayState, batch: Batch, made: ComputedStep) -> CompletedStep:
    """A step of the run, computed now, clipped and applied to the state as the recorded one was."""
    grads, clip = made.consumed(view)
    try:
        state.advance(view, grads, made.buffers)
    except (UnknownRuleError, DgrrError) as error:
        raise CannotExecuteError(f"step {view.step} cannot be applied: {error}") from error
    return CompletedStep(
        step=view.step,
        loss=made.loss,
        hyper=_hyper(trace, view),
        grads=grads,
        params=state.of_role(TensorRole.PARAM),
        state=state.of_role(TensorRole.STATE),
        model_state=state.of_role(TensorRole.BUFFER),
        batch=batch,
        clip=clip,
        micro_batches=len(made.passes),
    )

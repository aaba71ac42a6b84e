"""Steps of a recorded run, computed now from a state of it and recorded, up to the first that differs."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from ...base.arrays import Arrays
from ...base.runs.completed_step import CompletedStep
from ...base.runs.keep import Keep, Mode
from ...base.runs.run import RuleGroup, Run
from ...runtime.ir.step_tape import tape_of
from ...tape import NUMERICS, DgrrError
from ..replaying import recomputed
from ..replaying.captured_steps import STEPS, CapturedSteps, Done, are_many, together
from ..replaying.execution import CannotExecuteError, ComputedStep, Execution, LossFn
from ..replaying.recomputed import RunMode
from ..replaying.replay_state import ReplayState, Rules
from ..v2.errors import NonFiniteStepError
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Batch
from ..v2.read.reader import TraceReader, open_reader
from ..v2.read.step_view import StepView
from ..v2.verdict import Verdict
from ..v2.write.open_recorder import open_recorder
from ..v2.write.recorder import TraceRecorder
from ..v2.write.tensors import schema_of
from .compare import compare_from
from .losses import loss_curves
from .result import Cause, Comparison
from .words import opening

_VALUES = 1 << 30
"""Bytes of elements kept of the last step computed now, beside those that the record mode keeps."""

_ROLES = (TensorRole.PARAM, TensorRole.STATE, TensorRole.BUFFER)

_NO_MORE = "there are no more batches; pass those of the run from its beginning, freshly made"


class Anew(NamedTuple):
    """How computing steps anew went.

    `agrees`: whether every step has the link that was recorded. `ended`: why it ended where it could not go on.
    `first`: which step is number 0 of the new trace; those before it, from the first that was computed on, agree. Where
    all do so, as captured steps, there is no new trace.
    """

    agrees: bool
    ended: tuple[Cause, str] | None = None
    first: int | None = None


def called(loss_fn: LossFn) -> str:
    """What a run that a loss function computes now is called."""
    return f"{getattr(loss_fn, '__qualname__', type(loss_fn).__name__)}, computed now"


def named(found: Comparison, name: str, anew: Anew, first: int = 0) -> Comparison:
    """A comparison with steps that were computed from step `first` on, which end where they part."""
    found.b = name
    found.settings.pop("steps", None)
    if found.step is not None and anew.first is not None:
        found.sentence = found.sentence.replace(opening(anew.first, found.step), opening(first, found.step), 1)
    if found.cause is not Cause.LENGTH or found.step is None:
        return found
    if anew.ended is not None:
        found.cause, text = anew.ended
        found.sentence = f"{opening(first, found.step)}: {text}"
    elif not anew.agrees:
        text = (
            f"the link of step {found.step - 1} is not that of what it links: the file is not what it says; validate it"
        )
        return Comparison(found.a, name, Verdict.CHAIN, text)
    return found


def named_part(trace: TraceReader, path: Path, made: Anew, name: str, start: int = 0) -> Comparison:
    """What is said of a part of a run, from step `start` on, that was computed now and recorded at a path."""
    first = start if made.first is None else made.first
    with open_reader(path) as anew:
        found = named(compare_from(first, trace, anew), name, made, start)
        if start == 0 and found.verdict is Verdict.DIVERGED:
            found.losses = loss_curves(trace, anew, found.step, first)
    return found


def recorded_run(trace: TraceReader, step: int) -> Run:
    """The run as it goes on from the KEYFRAME before a step. Raises NotRecordedError."""
    values = trace.keyframe(step)
    return run_from(trace, *({t.name: values[t.name] for t in trace.schema.tensors if t.role is r} for r in _ROLES))


def run_from(trace: TraceReader, params: Arrays, state: Arrays, model_state: Arrays) -> Run:
    """The run of a trace, with what this library computes it, from a state on."""
    names = [t.name for t in trace.schema.tensors]
    rules = [
        RuleGroup(group.rule, group.hyperparameters, tuple([names[i] for i in group.tensors]))
        for group in trace.schema.rules
    ]
    return Run(
        params,
        state,
        rules,
        numerics=NUMERICS,
        model_state=model_state,
        clip_value=trace[0].clip_value,
        seed=trace.header.seed,
    )


def record_anew(
    trace: TraceReader,
    steps: range,
    path: Path,
    run: Run,
    execution: Execution,
    rules: Rules,
    *,
    mode: RunMode,
    whole: bool = False,
) -> Anew:
    """Record steps computed now from the state before them, the whole or up to the first with another link.

    The first of them must be one at which the recorded state was digested. In the mode "replay" many steps are captured
    as long as all that is recorded of them is what they give; what is recorded begins behind these, with one of which
    that holds too.

    Raises:
        CannotExecuteError: what is recorded does not say how a step was computed.
    """
    state = ReplayState(trace, {**run.params, **run.state, **run.model_state}, rules)
    same = schema_of(run) == trace.schema
    done = list[Done]()
    if mode == "replay" and same and not whole and _is_worth(trace, steps, state):
        left = _left(trace, steps, state, execution, rules)
        if left is None:
            return Anew(agrees=True)
        done = left
        steps = range(done[0].view.step, steps.stop) if done else steps
        run = run_from(trace, *map(state.of_role, _ROLES))
    with open_recorder(_kept(trace, path), run) as recorder:
        if not same:
            return Anew(agrees=False)
        taken = [one.batch for one in done]
        return _train(trace, steps, recorder, execution, state, taken, whole=whole)._replace(first=steps.start)


def _kept(trace: TraceReader, path: Path) -> Keep:
    """What is kept of the steps computed now: as much as the trace has."""
    header = trace.header
    return Keep(
        path,
        record=cast(Mode, header.mode.name.lower()),
        values=_VALUES,
        state_every=header.state_every,
        digest=header.algorithm.word,
    )


def _is_worth(trace: TraceReader, steps: range, state: ReplayState) -> bool:
    """Whether steps are to be captured: many of them, from the state that is recorded."""
    if len(steps) < recomputed.WORTH or trace.header.state_every > STEPS or trace.header.numerics != NUMERICS:
        return False
    return state.first_other([*trace.keyframe_digests(steps.start).values()]) is None


def _left(
    trace: TraceReader, steps: range, state: ReplayState, execution: Execution, rules: Rules
) -> list[Done] | None:
    """Do steps as captured ones; from the first that is another one, or cannot be done, go back a little.

    Gives the steps that are to be done again from there, in the state that is left; None where all agree.
    """
    captured, left = CapturedSteps(trace, execution.loss_fn, state, rules, trace.header.state_every), len(steps)
    for stretch in together(_with_batches(map(trace.__getitem__, steps), execution), are_many):
        while stretch:
            done = captured.next(stretch)
            stretch, left = stretch[done.steps :], left - done.steps
            if not done.agree:
                return [*captured.back(), *stretch]
    if left:
        return captured.back()
    seal = trace.seal
    ends = steps.stop == len(trace) and seal is not None and bool(seal.final)
    return captured.back() if ends and seal and state.first_other(seal.final[:-1]) is not None else None


def _with_batches(views: Iterable[StepView], execution: Execution) -> Iterator[Done]:
    """Steps with their batches, as long as there are any."""
    for view in views:
        batch = execution.take(view)
        if batch is None:
            return
        yield Done.own(view, batch)


def _train(
    trace: TraceReader,
    steps: range,
    recorder: TraceRecorder,
    execution: Execution,
    state: ReplayState,
    taken: list[tuple[Batch, ...]],
    *,
    whole: bool,
) -> Anew:
    """Train steps; ``taken`` are the micro-batches of the first of them, which were taken before."""
    previous = trace[steps.start - 1].link if steps.start else recorder.link
    agrees = True
    params = [t.name for t in trace.schema.tensors if t.role is TensorRole.PARAM]
    for view in map(trace.__getitem__, steps):
        batch = taken.pop(0) if taken else execution.take(view)
        if batch is None:
            return Anew(agrees=False, ended=(Cause.DATA, _NO_MORE))
        made = execution.compute(view, state, batch)
        try:
            done = _advanced(trace, view, state, execution.recorded(batch), made)
            recorder.step(replace(done, step=view.step - steps.start))
        except NonFiniteStepError as error:
            return Anew(agrees=False, ended=(Cause.GRADIENT, f"computed now, {error.tensor!r} is not finite"))
        if recorder.link_behind(previous, view.step) != view.link:
            agrees = False
            if not whole or trace.ops(view.step) is not None:
                recorder.record_tape(tape_of(made.passes, params))
            if not whole:
                break
        previous = view.link
    return Anew(agrees)


def _advanced(
    trace: TraceReader, view: StepView, state: ReplayState, batch: Batch, made: ComputedStep
) -> CompletedStep:
    """A step of the run, computed now, clipped and applied to the state as the recorded one was."""
    grads, clip = made.consumed(view)
    try:
        state.advance(view, grads, made.buffers)
    except DgrrError as error:
        raise CannotExecuteError(f"step {view.step} cannot be applied: {error}") from error
    return CompletedStep(
        step=view.step,
        loss=made.loss,
        hyper=view.hyper,
        grads=grads,
        params=state.of_role(TensorRole.PARAM),
        state=state.of_role(TensorRole.STATE),
        model_state=state.of_role(TensorRole.BUFFER),
        batch=batch,
        clip=clip,
        micro_batches=len(made.passes),
        order=view.order,
    )

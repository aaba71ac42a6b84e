"""Runs that no trainer makes: a single step, a function of arrays, a captured step over batches."""

from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, signature
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array, Arrays
from ...base.runs.completed_step import CompletedStep
from ...base.runs.run import RuleGroup, Run
from ...runtime.captured.captured_step import CapturedStep
from ...runtime.ir.step_tape import tape_of
from ...runtime.step.batch import batch_arrays
from ...runtime.step.completed import completed
from ...runtime.step.evaluate import evaluate
from ...runtime.step.loss_call import LossFn, RunPoint
from ...tape import NUMERICS, AnyVar, DTypeError, Var, ops
from .recording import GoldenRecording

NO_RULE = "none@1"
"""The rule of a step that updates nothing."""


def record_step(
    recording: GoldenRecording, loss_fn: LossFn, params: Arrays, batch: Any, *, model_state: Arrays, seed: int
) -> None:
    """Record the one step of a loss function on a batch, without an update."""
    params = {name: np.asarray(array) for name, array in params.items()}
    made = evaluate(loss_fn, params, batch, RunPoint(0, seed, model_state))
    made.require_finite()
    run = Run(params, {}, [RuleGroup(NO_RULE)], numerics=NUMERICS, model_state=model_state, seed=seed)
    with recording.open_recorder(run) as recorder:
        done = CompletedStep(
            step=0,
            loss=made.loss,
            hyper={},
            grads=made.grads,
            params=params,
            state={},
            model_state=made.model_state,
            batch=batch,
            metrics=made.metrics,
            tape=tape_of([made], params) if recorder.wants_tape(0) else None,
        )
        recorder.step(done)


def record_function(recording: GoldenRecording, fn: Callable[..., Any], arrays: Sequence[Array]) -> None:
    """Record a function of arrays as a step whose loss is the sum of all elements of its outputs."""
    given = dict(zip(_names(fn, len(arrays)), arrays, strict=True))
    params = {name: array for name, array in given.items() if array.dtype.kind == "f"}
    others = {name: array for name, array in given.items() if name not in params}

    def loss_fn(p: Any, batch: Any) -> AnyVar:
        return _total(fn(*[p[name] if name in params else batch[name] for name in given]))

    record_step(recording, loss_fn, params, others, model_state={}, seed=0)


def record_steps(recording: GoldenRecording, step: CapturedStep, batches: Iterable[Any]) -> npt.NDArray[Any]:
    """Record a captured step, trained on batches; the losses."""
    losses: list[Any] = []
    with recording.open_recorder(step.as_run()) as recorder:
        for number, batch in enumerate(batches):
            tape = step.tape(batch) if recorder.wants_tape(number) else None
            losses.append(step(batch))
            recorder.step(completed(step, number, batch, tape))
    return np.array(losses)


def _names(fn: Callable[..., Any], count: int) -> list[str]:
    """What a function calls its arguments; their numbers where it does not say."""
    try:
        parameters = list(signature(fn).parameters.values())
    except (TypeError, ValueError):  # built-in functions have none
        parameters = []
    plain = [p.name for p in parameters if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    return [*plain[:count], *map(str, range(len(plain[:count]), count))]


def _total(outputs: Any) -> AnyVar:
    """The sum of all elements of all outputs, in float64 where their dtypes differ."""
    sums = [_sum(i, output) for i, output in enumerate(batch_arrays(outputs))]
    alike = len({output.dtype for output in sums}) == 1
    first, *rest = sums if alike else [ops.cast(output, "float64") for output in sums]
    for output in rest:
        first = first + output
    return first


def _sum(position: int, output: Any) -> AnyVar:
    if output.__class__ is not Var:
        raise DTypeError(f"golden_trace.check: output {position} of 'fn': expected a Var, got {type(output).__name__}")
    floating: AnyVar = output if output.dtype.kind == "f" else ops.cast(output, "float64")
    return floating.sum() if floating.shape else floating

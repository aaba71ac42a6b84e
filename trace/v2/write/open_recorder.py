"""Beginning the trace of a training run, and going on with one that was not finished."""

import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from json import dumps
from typing import Literal, NamedTuple

from ....base.arrays import Arrays
from ....base.completed_step import RuleGroup
from ..format.constants import DEFAULT_PAYLOAD, RecordMode
from ..format.digest import Algorithm
from ..format.header import Header
from ..format.schema import CLIP_EVENT
from .environment import describe_environment
from .keyframe_schedule import Every
from .ops_schedule import OpsSchedule, RecordOps
from .recorder import OnNonfinite, Recorder
from .resume import Unfinished
from .tensors import RecordedTensors, schema_of
from .writer import COMMIT_EVERY, TraceWriter

KEYFRAME_EVERY = 4096
_SMALL_STATE = 1 << 20
_ALGORITHMS = {"xxh3-128": Algorithm.XXH3_128, "sha256": Algorithm.SHA256}

Mode = Literal["digest", "grads", "full", "bare"]
"""What is kept of each step: digests, gradients too, or the state too. Of "bare", not even the state of keyframes."""


class Parent(NamedTuple):
    """The trace that a run goes on from: its last file chain digest, and how many of its steps lie before the run."""

    root: bytes
    steps: int


def open_recorder(
    path: str | os.PathLike[str],
    *,
    record: Mode = "digest",
    params: Arrays,
    state: Arrays,
    model_state: Arrays | None = None,
    rule: str | Sequence[RuleGroup],
    hyperparameters: Sequence[str] = (),
    clip_value: float | None = None,
    numerics: int,
    seed: int = 0,
    created_at: int | None = None,
    salt: bytes | None = None,
    overwrite: bool = False,
    digest: Literal["xxh3-128", "sha256"] = "xxh3-128",
    state_every: int | None = None,
    keyframe_every: Every = KEYFRAME_EVERY,
    keyframe_budget: int | None = None,
    commit_every: int | None = COMMIT_EVERY,
    largest_payload: int = DEFAULT_PAYLOAD,
    record_ops: RecordOps = None,
    record_values: int = 0,
    on_nonfinite: OnNonfinite = "stop",
    parent: Parent | None = None,
) -> Recorder:
    """Begin a trace: create `PATH.partial` with header, SCHEMA, KEYFRAME 0 and the environment.

    Args:
        path: final name of the trace.
        record: what is kept of each step: digests, gradients too, or the state too. "bare" leaves out the states that
            the others keep from time to time, and with them the way to recompute anything: for comparing alone.
        params: name → float32 or float64 array, before the first step.
        state: name → optimizer state array, before the first step.
        model_state: name → array of what the model keeps besides its params; the buffers of the trace.
        rule: the optimizer's rule and its version, such as `adam@1`; or groups of params and state, each with its rule
            and its hyperparameters.
        hyperparameters: of one rule, the names of what each step hands over as `hyper`.
        clip_value: bound of every element of the gradients, which were clipped before they are handed over.
        numerics: the version of the arithmetic that computes the run.
        seed: seed of the run, for people.
        created_at: nanoseconds since 1970; default: now.
        salt: 16 bytes; default: random.
        overwrite: begin anew where a finished trace or an unfinished `PATH.partial` exists; the finished one stays
            until the new one is sealed.
        digest: `sha256` for traces whose last digest is published or signed.
        state_every: digest the state every so many steps; default 1 up to 1 MiB of state, else 16.
        keyframe_every: write the whole state every so many steps, rounded up to a multiple of `state_every`, or, a
            `timedelta`, whenever so much time has passed.
        keyframe_budget: how many bytes all these states but the first may take; their distance doubles whenever half
            of what is left is used up. None: any number.
        commit_every: fsync every so many steps; None: only when the trace is sealed.
        largest_payload: frames are split above this many bytes.
        record_ops: the steps whose every value and gradient is digested: "first", "every", their numbers, or every
            step until so many bytes are written.
        record_values: of the first and of the last step, gradients and then what stands after the step are written
            too, in so many bytes; where `record` keeps them anyway, nothing more.
        on_nonfinite: whether a loss or gradient that is not finite is recorded, or raises NonFiniteStepError.
        parent: the trace that the run goes on from; its root and the number of steps before the run.

    Raises:
        TraceWriteError: the path or its `.partial` exists (and `overwrite` is false), another writer is at work on
            it, or the system refuses.
        ValueError: a name, shape, rule or option breaks a rule of the format.
    """
    schema = schema_of(params, state, model_state or {}, rule, hyperparameters, clip_value)
    schedule = OpsSchedule(record_ops)
    every = state_every or (1 if schema.nbytes <= _SMALL_STATE else 16)
    algorithm = _ALGORITHMS[digest]
    environment = dumps(describe_environment(), sort_keys=True)
    header = Header(
        salt=os.urandom(16) if salt is None else salt,
        created_at=time.time_ns() if created_at is None else created_at,
        seed=seed,
        algorithm=algorithm,
        mode=RecordMode[record.upper()],
        state_every=every,
        numerics=numerics,
        largest_payload=largest_payload,
        environment=algorithm.hash(environment.encode()).ljust(32, b"\0"),
        parent_root=bytes(32) if parent is None else parent.root.ljust(32, b"\0"),
        parent_steps=0 if parent is None else parent.steps,
    )
    tensors = RecordedTensors(schema, algorithm)
    start = tensors.whole(params, state, model_state or {})
    writer = TraceWriter.create(path, header, schema, commit_every=commit_every, overwrite=overwrite)
    with _closed_on_error(writer):
        recorder = Recorder(
            writer,
            tensors,
            start,
            keyframe_every=keyframe_every,
            keyframe_budget=keyframe_budget,
            clip_value=clip_value,
            schedule=schedule,
            record_values=record_values,
            on_nonfinite=on_nonfinite,
        )
        recorder.event("environment", environment)
        if clip_value is not None:  # a copy, for readers that are older than the rule in the schema
            recorder.event(CLIP_EVENT, repr(float(clip_value)))
        writer.flush()
    return recorder


def resume_recorder(
    path: str | os.PathLike[str],
    *,
    steps: int,
    record: Mode = "digest",
    params: Arrays,
    state: Arrays,
    model_state: Arrays | None = None,
    rule: str | Sequence[RuleGroup],
    hyperparameters: Sequence[str] = (),
    clip_value: float | None = None,
    numerics: int,
    seed: int = 0,
    keyframe_every: Every = KEYFRAME_EVERY,
    keyframe_budget: int | None = None,
    commit_every: int | None = COMMIT_EVERY,
    record_ops: RecordOps = None,
    on_nonfinite: OnNonfinite = "stop",
) -> Recorder:
    """Go on with the trace of a run: `PATH.partial`, cut after its first `steps` steps, or a copy of a finished `PATH`.

    A finished trace of `steps` steps stays as it is until the longer one is sealed and replaces it.

    What stands behind them is kept as `PATH.torn`, or `PATH.torn.1` and so on, and cut off. The run computes those
    steps again, and each is compared with what was recorded of it: at the first that differs a RepeatedStepWarning,
    and an EVENT `differs`, name the step and the tensor. Everything is read and compared first; a refusal leaves the
    file as it was. The file's own digest, salt and `state_every` are kept; the other arguments are those of
    `open_recorder`, and `keyframe_every` and `commit_every` should be what they were.

    Args:
        path: final name of the trace.
        steps: how many steps the run had done when the checkpoint was saved.
        record: as at the beginning.
        params: name → array, after that step.
        state: name → optimizer state array, after that step.
        model_state: name → array of the model's state, after that step.
        rule: as at the beginning.
        hyperparameters: as at the beginning.
        clip_value: as at the beginning.
        numerics: as at the beginning.
        seed: as at the beginning.
        keyframe_every: write the whole state every so many steps, or so much time.
        keyframe_budget: how many bytes these states may take, those that are there already too.
        commit_every: fsync every so many steps; None: only when the trace is sealed.
        record_ops: the steps whose every value and gradient is digested, as for `open_recorder`.
        on_nonfinite: whether a loss or gradient that is not finite is recorded, likewise.

    Raises:
        TraceWriteError: there is no such trace, another process writes it, a finished one has more steps, it does not
            hold `steps` whole steps, or the system refuses.
        ValueError: an argument is not that of the beginning, or a tensor is not what the trace says it was after
            that step.
    """
    schedule = OpsSchedule(record_ops)
    with Unfinished(path, steps) as unfinished:
        unfinished.require(RecordMode[record.upper()], numerics, seed)
        schema = schema_of(params, state, model_state or {}, rule, hyperparameters, clip_value)
        unfinished.require_schema(schema)
        tensors = RecordedTensors(schema, unfinished.header.algorithm)
        now = tensors.whole(params, state, model_state or {})
        unfinished.require_state(now.digests)
        note = {
            "cut_bytes": unfinished.surplus,
            "cut_steps": len(unfinished.repeated),
            "environment": describe_environment(),
            "state": "compared" if unfinished.digests else "not recorded",
            "step": steps,
        }
        writer = unfinished.go_on(commit_every, dumps(note, sort_keys=True))
    with _closed_on_error(writer):
        recorder = Recorder(
            writer,
            tensors,
            now,
            keyframe_every=keyframe_every,
            keyframe_budget=keyframe_budget,
            clip_value=clip_value,
            schedule=schedule,
            on_nonfinite=on_nonfinite,
            repeated=unfinished.repeated,
        )
        writer.flush()
    return recorder


@contextmanager
def _closed_on_error(writer: TraceWriter) -> Generator[None]:
    try:
        yield
    except BaseException:
        writer.close()
        raise

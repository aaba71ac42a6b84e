"""Beginning the trace of a training run, and resuming an unfinished one."""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from json import dumps

from ....base.runs.keep import Keep
from ....base.runs.run import Run
from ....base.system import FilePath
from ..format.constants import (
    FOREIGN_NUMERICS,
    KNOWS_ADDITIVE_VALUES,
    KNOWS_ALL_DTYPES,
    KNOWS_PACKED_CALLS,
    RecordMode,
)
from ..format.digest import Algorithm
from ..format.header import UNKNOWN_DIGEST, Header
from ..format.schema import CLIP_EVENT, Schema
from .environment import describe_environment, noted
from .recorder import TraceRecorder
from .resume import Unfinished
from .tensors import RecordedTensors, schema_of
from .writer import TraceWriter

_SMALL_STATE = 1 << 20


def open_recorder(keep: Keep | FilePath, run: Run) -> TraceRecorder:
    """Begin a trace: create `PATH.partial` with header, SCHEMA, KEYFRAME 0 and the environment.

    Args:
        keep: what to keep of the run, and where.
        run: what is trained, before its first step.

    Raises:
        TraceWriteError: the path or its `.partial` exists (and is not to be overwritten), another writer is using it,
            or the system refuses.
        DomainError: a name, shape or rule breaks a rule of the format.
    """
    keep = Keep.of(keep)
    schema = schema_of(run)
    environment = dumps(describe_environment(), sort_keys=True)
    header = _header(keep, run, schema, environment.encode())
    tensors = RecordedTensors(schema, header.algorithm)
    start = tensors.whole(run.params, run.state, run.model_state)
    writer = TraceWriter.create(keep.path, header, schema, commit_every=keep.commit_every, overwrite=keep.overwrite)
    with _closed_on_error(writer):
        recorder = TraceRecorder(writer, tensors, start, keep, run)
        recorder.event("environment", environment)
        if run.clip_value is not None:  # a copy, for readers that are older than the rule in the schema
            recorder.event(CLIP_EVENT, repr(float(run.clip_value)))
        if keep.notes is not None:
            recorder.note(noted(keep.notes, header.created_at))
        writer.flush()
    return recorder


def _header(keep: Keep, run: Run, schema: Schema, environment: bytes) -> Header:
    algorithm = Algorithm.named(keep.digest)
    parent = run.parent
    return Header(
        salt=os.urandom(16) if keep.salt is None else keep.salt,
        created_at=time.time_ns() if keep.created_at is None else keep.created_at,
        seed=run.seed,
        algorithm=algorithm,
        mode=RecordMode[keep.record.upper()],
        state_every=keep.state_every or _state_every(keep, run, schema),
        numerics=run.numerics,
        largest_payload=keep.largest_payload,
        environment=algorithm.hash(environment).ljust(32, b"\0"),
        parent_root=UNKNOWN_DIGEST if parent is None else parent.root.ljust(32, b"\0"),
        parent_steps=0 if parent is None else parent.steps,
        reader=_reader(keep, run, schema),
        additive=run.additive,
    )


def _reader(keep: Keep, run: Run, schema: Schema) -> int:
    """The lowest version of a reader that understands the file."""
    if run.additive:
        return KNOWS_ADDITIVE_VALUES
    if keep.ops is None:
        return schema.reader
    if run.numerics == FOREIGN_NUMERICS:  # what another framework computes on the way may be of any dtype
        return KNOWS_ALL_DTYPES
    return max(schema.reader, KNOWS_PACKED_CALLS) if run.calls else schema.reader


def _state_every(keep: Keep, run: Run, schema: Schema) -> int:
    """Each step, where that is cheap: of a run of another framework, whose state was copied to be told, digests are."""
    copied = run.numerics == FOREIGN_NUMERICS and keep.record in ("digest", "bare")
    return 1 if copied or schema.nbytes <= _SMALL_STATE else 16


def resume_recorder(keep: Keep | FilePath, run: Run, *, steps: int) -> TraceRecorder:
    """Continue the trace of a run: `PATH.partial`, cut after its first `steps` steps, or a copy of a finished `PATH`.

    A finished trace of `steps` steps stays as it is until the longer one is sealed and replaces it.

    What follows them is kept as `PATH.torn`, or `PATH.torn.1` and so on, and cut off. The run computes those steps
    again, and each is compared with its old record: at the first that differs, a RepeatedStepWarning and an EVENT
    `differs` name the step and the tensor. Everything is read and compared first; a refusal leaves the file as it was.
    The file's own digest, salt and `state_every` are kept.

    Args:
        keep: as at the beginning; a budget of keyframes includes the existing ones, and notes are written again, with
            the host and the time.
        run: as at the beginning, with its arrays as they are after so many steps.
        steps: how many steps the run had done when the checkpoint was saved.

    Raises:
        TraceWriteError: there is no such trace, another process writes it, a finished one has more steps, it does not
            hold `steps` whole steps, or the system refuses.
        DomainError: the run or its record is not that of the beginning, or a tensor is not what the trace says it was
            after that step.
    """
    keep = Keep.of(keep)
    with Unfinished(keep.path, steps) as unfinished:
        unfinished.require(RecordMode[keep.record.upper()], run.numerics, run.seed)
        unfinished.require_schema(schema := schema_of(run))
        tensors = RecordedTensors(schema, unfinished.header.algorithm)
        now = tensors.whole(run.params, run.state, run.model_state)
        unfinished.require_state(now.digests)
        note = {
            "cut_bytes": unfinished.surplus,
            "cut_steps": len(unfinished.repeated),
            "environment": describe_environment(),
            "state": "compared" if unfinished.digests else "not recorded",
            "step": steps,
        }
        writer = unfinished.go_on(keep.commit_every, dumps(note, sort_keys=True))
    with _closed_on_error(writer):
        recorder = TraceRecorder(writer, tensors, now, keep, run, repeated=unfinished.repeated)
        if keep.notes is not None:
            recorder.note(noted(keep.notes, time.time_ns()))
        writer.flush()
    return recorder


@contextmanager
def _closed_on_error(writer: TraceWriter) -> Generator[None]:
    try:
        yield
    except BaseException:
        writer.close()
        raise

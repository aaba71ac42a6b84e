"""Recording a training run: what the trainer calls after every step."""

import os
import time
from collections.abc import Mapping, Sequence
from math import isfinite
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from .v2.digest import (
    NUMPY_DTYPES,
    Algorithm,
    Array,
    Batch,
    InputDigest,
    TensorDigest,
    canonical_nan,
    dtype_name,
    raw,
    state_root,
    surely_finite,
)
from .v2.environment import describe_environment
from .v2.errors import NonFiniteError
from .v2.format import BATCH_ID_LENGTH, DEFAULT_PAYLOAD, RecordMode, Role, StepFlag
from .v2.header import Header
from .v2.keyframe import encode_keyframe
from .v2.limits import Limits
from .v2.schema import Group, Schema, TensorSpec
from .v2.step import StepRecord, encode_step
from .v2.writer import COMMIT_EVERY, TraceWriter

KEYFRAME_EVERY = 4096
_SMALL_STATE = 1 << 20
_NO_BATCH_ID = bytes(BATCH_ID_LENGTH)
_NO_FLAGS = StepFlag(0)
_LOSS_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
_ALGORITHMS = {"xxh3-128": Algorithm.XXH3_128, "sha256": Algorithm.SHA256}
CORRECTIONS = "corrections"

Arrays = Mapping[str, Array]
"""Name → array."""


class _Slot(NamedTuple):
    """One tensor of the schema, ready to be checked and digested."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    digest: TensorDigest

    def take(self, arrays: Arrays, what: str) -> Array:
        """The array of this tensor in C order; `what` names it in the error."""
        array = arrays[self.name]
        if array.dtype != self.dtype or array.shape != self.shape:
            raise ValueError(
                f"recorder: {what} '{self.name}': expected {self.dtype} {self.shape} as at the beginning "
                f"of the trace, got {array.dtype} {array.shape}; a change of dtype or shape needs a new trace"
            )
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)


class Recorder:
    """Writes one run; made by `open_recorder`. A `with` block seals it, or closes it on an error."""

    def __init__(self, writer: TraceWriter, params: Arrays, state: Arrays, keyframe_every: int) -> None:
        self._writer = writer
        self._hyperparameters = writer.schema.groups[0].hyperparameters
        self._keyframe_every = keyframe_every
        self._layout = writer.layout
        self._algorithm = writer.header.algorithm
        self._input_digest = InputDigest(self._algorithm)
        self._slots = [
            _Slot(t.name, NUMPY_DTYPES[t.dtype], t.shape, TensorDigest(self._algorithm, t.dtype, t.shape))
            for t in writer.schema.tensors
        ]
        self._params = self._slots[: writer.schema.params]
        self._state = self._slots[writer.schema.params :]
        self._every_param = tuple(range(len(self._params)))
        self._corrected = writer.schema.corrections > 0
        self._last: tuple[Arrays, Arrays] | None = None
        initial = self._state_arrays(params, state)
        self._last_digests = self._digest_all(initial)
        self._keyframe(initial, self._last_digests)

    @property
    def steps(self) -> int:
        """Number of steps recorded."""
        return self._writer.steps

    @property
    def path(self) -> str:
        """The name the trace has once it is sealed."""
        return self._writer.path

    def step(
        self,
        *,
        step: int,
        loss: Array,
        hyper: Mapping[str, float],
        grads: Arrays,
        params: Arrays,
        state: Arrays,
        batch: Batch,
        clip: tuple[float, float] | None = None,
        micro_batches: int = 1,
    ) -> None:
        """Record one step, after its update. Arrays are read before the call returns and not kept.

        Args:
            step: 0, 1, 2, …
            loss: scalar, float32 or float64.
            hyper: the hyperparameters this step used, by name.
            grads: gradients as the optimizer consumed them; a param that is absent was not updated.
            params: every param after the update.
            state: every optimizer state tensor after the update.
            batch: the arrays the loss was computed from.
            clip: (threshold, scale) if the gradients were clipped by norm.
            micro_batches: how many micro-batches the gradients were accumulated over.

        Raises:
            NonFiniteError: the loss or a gradient is not finite; nothing of the step was written.
            ValueError: a step out of order, or an array of another dtype or shape than the trace began with.
            TraceWriteError: the file cannot be written; the writer has stopped.
        """
        if step != self._writer.steps:
            raise ValueError(f"recorder.step: expected step {self._writer.steps}, got {step}; record each step once")
        self._last, self._last_digests = None, []
        loss = _finite_loss(step, loss)
        present, consumed = self._finite_grads(step, grads)
        due = self._layout.due(step)
        after = self._state_arrays(params, state) if due else []
        after_digests = self._digest_all(after)
        record = StepRecord(
            step=step,
            link=b"",
            batch_id=_NO_BATCH_ID,
            loss=loss,
            flags=StepFlag.CLIPPED if clip else _NO_FLAGS,
            micro_batches=micro_batches,
            clip=clip,
            input_digest=self._input_digest(batch),
            hyper=tuple([hyper[name] for name in self._hyperparameters]),
            corrections=tuple(state[CORRECTIONS].tolist()) if self._corrected else (),
            grads=present,
            digests=(
                *[self._slots[i].digest.of_bytes(g.data) for i, g in zip(present, consumed, strict=True)],
                *after_digests,
            ),
            root=state_root(self._algorithm, after_digests) if due else None,
        )
        front = encode_step(self._layout, self._algorithm.hash, self._writer.link, record)
        self._writer.step(front, [raw(a) for a in self._recorded(consumed, after)])
        if (step + 1) % self._keyframe_every == 0:
            self._keyframe(after, after_digests)
        self._last, self._last_digests = (params, state), after_digests

    def event(self, kind: str, text: str) -> None:
        """Write a note into the trace: a kind of `a-z0-9_-` and a text, 64 KiB in all.

        Raises:
            ValueError: another kind, or too long a text.
            TraceWriteError: the file cannot be written.
        """
        self._writer.event(kind, text)

    def seal(self) -> None:
        """End the trace and give it its final name.

        Where the state after the last step was not digested, the arrays handed to the last `step` are read
        again: they must not have changed since. After a `step` that raised, the final state is left out.

        Raises:
            TraceWriteError: the file cannot be written.
        """
        if self._last is not None and not self._last_digests:
            self._last_digests = self._digest_all(self._state_arrays(*self._last))
        self._writer.seal(self._last_digests)

    def close(self) -> None:
        """Leave the trace unsealed, readable as `PATH.partial`; no effect on a sealed or closed one."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._writer.closed:
            self.seal()
        self.close()

    def _finite_grads(self, step: int, grads: Arrays) -> tuple[tuple[int, ...], list[Array]]:
        present = self._every_param
        if len(grads) != len(present):
            unknown = grads.keys() - {slot.name for slot in self._params}
            if unknown:
                raise ValueError(f"recorder.step: gradients of unknown params: {', '.join(sorted(unknown))}")
            present = tuple(i for i in present if self._params[i].name in grads)
        consumed = [self._params[i].take(grads, "gradient of") for i in present]
        for i, grad in zip(present, consumed, strict=True):
            if not surely_finite(grad) and not np.isfinite(grad).all():
                element = int(np.argmin(np.isfinite(grad)))
                raise NonFiniteError(step, self._params[i].name, element, float(grad.flat[element]))
        return present, consumed

    def _state_arrays(self, params: Arrays, state: Arrays) -> list[Array]:
        after = [canonical_nan(slot.take(params, "param")) for slot in self._params]
        after += [canonical_nan(slot.take(state, "optimizer state")) for slot in self._state]
        return after

    def _recorded(self, consumed: list[Array], after: list[Array]) -> list[Array]:
        mode = self._writer.header.mode
        if mode is RecordMode.DIGEST:
            return []
        return consumed + after if mode is RecordMode.FULL else consumed

    def _digest_all(self, arrays: list[Array]) -> list[bytes]:
        return [slot.digest.of_bytes(a.data) for slot, a in zip(self._slots, arrays, strict=False)]

    def _keyframe(self, arrays: list[Array], digests: list[bytes]) -> None:
        root = state_root(self._algorithm, digests)
        self._writer.keyframe(encode_keyframe(b"", b"", digests, root), root, [raw(a) for a in arrays])


def _finite_loss(step: int, loss: Array) -> Array:
    loss = np.asarray(loss)
    if loss.shape != () or loss.dtype not in _LOSS_DTYPES:
        raise ValueError(f"recorder.step: loss: expected a float32 or float64 scalar, got {loss.dtype} {loss.shape}")
    if not isfinite(loss):
        raise NonFiniteError(step, "loss", None, float(loss))
    return loss


def open_recorder(
    path: str | os.PathLike[str],
    *,
    record: Literal["digest", "grads", "full"] = "digest",
    params: Arrays,
    state: Arrays,
    rule: str,
    hyperparameters: Sequence[str],
    numerics: int,
    seed: int = 0,
    created_at: int | None = None,
    salt: bytes | None = None,
    overwrite: bool = False,
    digest: Literal["xxh3-128", "sha256"] = "xxh3-128",
    state_every: int | None = None,
    keyframe_every: int = KEYFRAME_EVERY,
    commit_every: int | None = COMMIT_EVERY,
    largest_payload: int = DEFAULT_PAYLOAD,
) -> Recorder:
    """Begin a trace: create `PATH.partial` with header, SCHEMA, KEYFRAME 0 and the environment.

    Args:
        path: final name of the trace.
        record: what is kept of each step: digests, gradients too, or the state too.
        params: name → float32 or float64 array, before the first step.
        state: name → optimizer state array, before the first step.
        rule: the optimizer's rule and its version, such as `adam@1`.
        hyperparameters: the names of what each step hands over as `hyper`.
        numerics: the version of the arithmetic that computes the run.
        seed: seed of the run, for people.
        created_at: nanoseconds since 1970; default: now.
        salt: 16 bytes; default: random.
        overwrite: begin anew where an unfinished `PATH.partial` exists.
        digest: `sha256` for traces whose last digest is published or signed.
        state_every: digest the state every so many steps; default 1 up to 1 MiB of state, else 16.
        keyframe_every: write the whole state every so many steps, rounded up to a multiple of `state_every`.
        commit_every: fsync every so many steps; None: only when the trace is sealed.
        largest_payload: frames are split above this many bytes.

    Raises:
        TraceWriteError: the `.partial` exists or is being written, or the system refuses.
        ValueError: a name, shape, rule or option breaks a rule of the format.
    """
    schema = _schema(params, state, rule, hyperparameters)
    every = state_every or (1 if schema.nbytes <= _SMALL_STATE else 16)
    algorithm = _ALGORITHMS[digest]
    environment = describe_environment()
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
    )
    writer = TraceWriter(path, header, schema, commit_every=commit_every, overwrite=overwrite)
    try:
        recorder = Recorder(writer, params, state, -(-keyframe_every // every) * every)
        recorder.event("environment", environment)
        writer.flush()
    except BaseException:
        writer.close()
        raise
    return recorder


def _schema(params: Arrays, state: Arrays, rule: str, hyperparameters: Sequence[str]) -> Schema:
    specs = [TensorSpec(n, Role.PARAM, dtype_name(a.dtype), a.shape) for n, a in params.items()]
    specs += [TensorSpec(n, Role.STATE, dtype_name(a.dtype), a.shape) for n, a in state.items()]
    corrections = state[CORRECTIONS].size if CORRECTIONS in state else 0
    group = Group(rule, tuple(hyperparameters), corrections, tuple(range(len(specs))))
    schema = Schema(tuple(specs), (group,))
    schema.check(Limits())
    return schema

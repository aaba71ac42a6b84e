"""Recording the steps of a run."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from ....arrays import Array, Arrays
from ..format.constants import BATCH_ID_LENGTH, RecordMode, StepFlag
from ..format.digest import Batch, InputDigest, raw, state_root
from ..format.keyframe import encode_keyframe
from ..format.step import StepRecord, encode_step
from .tensors import CORRECTIONS, RecordedTensors, Snapshot, finite_loss
from .writer import TraceWriter

_NO_BATCH_ID = bytes(BATCH_ID_LENGTH)
_NO_FLAGS = StepFlag(0)
_NOTHING = Snapshot([], [])


class Recorder:
    """Writes one run: what the trainer calls after every step.

    Made by `open_recorder` or `resume_recorder`. A `with` block seals the trace, or closes it on an error.
    """

    def __init__(self, writer: TraceWriter, tensors: RecordedTensors, start: Snapshot, keyframe_every: int) -> None:
        """`start` is the state before the next step; `keyframe_every` is rounded up to a multiple of `state_every`."""
        self._writer = writer
        self._tensors = tensors
        self._layout = writer.layout
        self._mode = writer.header.mode
        self._algorithm = writer.header.algorithm
        self._input_digest = InputDigest(self._algorithm)
        self._hyperparameters = writer.schema.groups[0].hyperparameters
        self._corrected = writer.schema.corrections > 0
        every = self._layout.state_every
        self._keyframe_every = -(-keyframe_every // every) * every
        self._last: tuple[Arrays, Arrays, Arrays] | None = None
        self._last_digests = start.digests
        if writer.last_keyframe != writer.steps:
            self._keyframe_if_due(start)

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
        model_state: Arrays | None = None,
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
            model_state: what the model keeps besides its params, after the step, by the names of the beginning.
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
        loss = finite_loss(step, loss)
        present, consumed = self._tensors.gradients(step, grads)
        due = self._layout.due(step)
        after = self._tensors.state(params, state) if due else _NOTHING
        buffers = self._tensors.buffers(model_state or {})
        whole = after + buffers
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
            digests=(*consumed.digests, *buffers.digests, *after.digests),
            root=state_root(self._algorithm, whole.digests) if due else None,
        )
        front = encode_step(self._layout, self._algorithm.hash, self._writer.link, record)
        self._writer.step(front, [raw(a) for a in self._recorded(consumed + buffers, after)])
        self._keyframe_if_due(whole)
        self._last, self._last_digests = (params, state, model_state or {}), whole.digests if due else []

    def commit(self) -> None:
        """Return once everything recorded so far is on the disk.

        Called before a checkpoint is saved, it makes sure that the trace is never behind the checkpoint.

        Raises:
            TraceWriteError: the file cannot be written.
        """
        self._writer.commit()

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
            params, state, model_state = self._last
            self._last_digests = (self._tensors.state(params, state) + self._tensors.buffers(model_state)).digests
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

    def _recorded(self, always: Snapshot, after: Snapshot) -> list[Array]:
        if self._mode is RecordMode.DIGEST:
            return []
        return always.arrays + after.arrays if self._mode is RecordMode.FULL else always.arrays

    def _keyframe_if_due(self, now: Snapshot) -> None:
        if self._writer.steps % self._keyframe_every == 0:
            root = state_root(self._algorithm, now.digests)
            front = encode_keyframe(b"", b"", now.digests, root)
            self._writer.keyframe(front, root, [raw(a) for a in now.arrays])

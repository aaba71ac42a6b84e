"""Recording the steps of a run."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self
from warnings import warn

from ....base.arrays import Array
from ....base.errors import DomainError
from ....base.runs.called_op import CalledOp
from ....base.runs.completed_step import CompletedStep, DigestedTape, StepNumbers, StepTape
from ....base.runs.keep import Keep
from ....base.runs.run import Run
from ..errors import RepeatedStepWarning
from ..format.digest import Algorithm, raw, state_root, tensor_digest
from ..format.documents.notes import NotesRecord
from ..format.frames import CALLS, KEYFRAME, NOTES, CallsRecord, encode_front_of_calls
from ..format.of_step import METRICS, SKETCHES, VALIDATION, VALUES, encode_figures, encode_sketches, encode_values
from ..format.step import encode_step
from .fronts import StepFronts
from .kept_values import kept_values, sketches_of
from .keyframe_schedule import KeyframeSchedule
from .last_recorded import LastRecorded
from .ops_schedule import OpsSchedule
from .prepared.prepared_frames import PreparedFrames, StepRows
from .repeated import Repeated
from .tensors import RecordedTensors, Snapshot
from .writer import TraceWriter


class TraceRecorder:
    """Writes one run: what the trainer calls after every step.

    Made by `open_recorder` or `resume_recorder`. A `with` block seals the trace, or closes it on an error.
    """

    def __init__(
        self,
        writer: TraceWriter,
        tensors: RecordedTensors,
        start: Snapshot,
        keep: Keep,
        run: Run,
        *,
        repeated: Repeated | None = None,
    ) -> None:
        """`start` is the state before the next step; the keyframes are those of `KeyframeSchedule`.

        `repeated` are steps that were recorded before the run was resumed, with which those recorded now are compared.
        """
        self._repeated = repeated
        self._schedule, self._values_budget = OpsSchedule(keep.ops), keep.values // 2
        self._sketches = keep.sketches
        self._called = 0
        self._generators = run.generators
        self._writer = writer
        self._tensors = tensors
        self._layout = writer.layout
        self._mode = writer.header.mode
        self._algorithm = writer.header.algorithm
        stops = run.on_nonfinite == "stop"
        self._fronts = StepFronts(self._layout, self._algorithm, tensors, run.clip_value, stops=stops)
        prepares = self._algorithm is Algorithm.XXH3_128
        self._prepared = PreparedFrames(self._fronts.names, tensors, writer) if prepares else None
        self._keyframes = KeyframeSchedule(
            keep.keyframe_every,
            keep.keyframe_budget,
            nbytes=self._layout.keyframe_bytes + len(self._keyframe_front(start)[0]),
            state_every=self._layout.state_every,
            last=writer.last_keyframe,
            written=writer.keyframes,
        )
        self._shown: tuple[str, ...] = ()
        self._last = LastRecorded(self._layout, tensors, start.digests)
        if self._keyframes.is_due(writer.steps):
            self._keyframe(start)

    @property
    def steps(self) -> int:
        """Number of steps recorded."""
        return self._writer.steps

    @property
    def link(self) -> bytes:
        """The link of the last step in the state chain; of a trace without steps, where the chain begins."""
        return self._writer.link

    def link_behind(self, previous: bytes, step: int) -> bytes:
        """The link that the last step has in a trace of this kind where it is number `step`, behind a link `previous`.

        Raises:
            DomainError: no step is recorded.
        """
        if not self._last.front:
            raise DomainError("recorder.link_behind: expected a step to be recorded before")
        record = self._last.record(self.steps - 1)._replace(step=step)
        return encode_step(self._layout, previous, record)[: self._layout.digest_size]

    @property
    def path(self) -> str:
        """The name the trace has once it is sealed."""
        return self._writer.path

    def wants_tape(self, step: int) -> bool:
        """Whether the digests of every value of a step are to be recorded: then it is handed over with its tape."""
        return self._schedule.wants(step)

    @property
    def keeps_values(self) -> bool:
        """Whether values of the last step are read at the end too: then, if they may change, they must be copies."""
        return bool(self._values_budget or self._sketches)

    def digests_state(self, step: int) -> bool:
        """Whether the state after a step is digested."""
        return self._layout.due(step)

    def step(self, done: CompletedStep) -> None:
        """Record one step, after its update. Arrays are read before the call returns and not changed.

        Raises:
            NonFiniteStepError: the loss or a gradient is not finite, and is not to be recorded; nothing of the step was
                written.
            DomainError: a step out of order, an array of another dtype or shape than the trace began with, or metrics
                that no trace can hold.
            TraceWriteError: the file cannot be written; the writer has stopped.
        """
        steps = self._writer.steps
        if done.step != steps:
            raise DomainError(f"recorder.step: expected step {steps}, got {done.step}; record each step once")
        self._last.forget()
        shown = encode_figures(METRICS, self._layout, "recorder.step: metrics", done.metrics) if done.metrics else b""
        made = None if self._prepared is None else self._prepared.write(done)
        self._last.front = made or self._write_by_parts(done)
        self._shown = tuple(done.metrics)
        if shown:
            self._writer.told(METRICS, shown)
        if self._repeated is not None:
            self._compare_repeated(self._repeated, bytes(self._last.front))
        if done.tape is not None and self.wants_tape(done.step):
            self.record_tape(done.tape)
        self._schedule.spend(self._called)
        self._called = 0
        if done.step == 0:
            self._keep_values(done)
        self._keep_state_if_due(done)
        is_read = self.keeps_values or not self.digests_state(done.step)
        self._last.done = done if is_read else _without_arrays(done)

    def settle(self) -> None:
        """Have the arrays of the last step change from now on: what is to be said of its state at the end is known.

        No effect where their values are kept.
        """
        if not self.keeps_values:
            self._last.settle()

    def _write_by_parts(self, done: CompletedStep) -> bytes:
        """Append the STEP of a step that cannot be made in one call; its front."""
        front, body = self._fronts.by_parts(self._writer.link, done)
        self._writer.step(front, [raw(array) for array in body])
        return front

    def room(self, first: int) -> int:
        """How many steps from one on may be recorded in one launch, at most; 1 where it is to be recorded alone."""
        room = min(self._keyframes.room(first), self._schedule.room(first), self._layout.alike(first))
        return max(1, room) if self._prepared is not None else 1

    def rows(self, first: CompletedStep, hyper: Sequence[Mapping[str, float]], numbers: StepNumbers) -> StepRows | None:
        """What records several steps in one launch: rows of the machine, run behind each step.

        ``first`` is as the first of them will be: all have its arrays, and ``numbers``, where they lie, and
        hyperparameters of their own; a metric that is NaN lies there in its canonical form. Behind the launch
        `recorded` is to be called. None, where steps are to be recorded one by one.

        Raises:
            TraceWriteError: the file takes no more.
        """
        self._writer.check_alive()
        alone = self._repeated is not None or first.step == 0 or tuple(numbers.metrics) != self._shown
        if self._prepared is None or alone or first.step != self._writer.steps:
            return None
        return self._prepared.rows(first, hyper[: self.room(first.step)], numbers)

    def recorded(self, last: CompletedStep, rows: StepRows) -> None:
        """The launch has ended behind this step. It is recorded now if a row of the recorder has ended the launch.

        Raises:
            TraceWriteError: the file cannot be written, or a step cannot be recorded, as of `step`.
        """
        steps = self._writer.steps
        if steps > rows.first:
            rows.made(steps - rows.first)
        if steps == last.step:
            self.step(last)
            return
        self._last.done, self._last.front = last, rows.front
        self._keep_state_if_due(last)

    def _keep_state_if_due(self, done: CompletedStep) -> None:
        """Write a KEYFRAME behind a step, if it is time."""
        if self._keyframes.is_due(done.step + 1):
            self._keyframe(self._tensors.whole(done.params, done.state, done.model_state))

    def _compare_repeated(self, repeated: Repeated, front: bytes) -> None:
        """Hold a step that is computed once more against what was recorded of it before the run was resumed."""
        found = repeated.difference(self.steps - 1, front)
        if found is not None:
            self.event("differs", found.note)
            warn(found.told(self.path), RepeatedStepWarning, stacklevel=3)

    def record_tape(self, tape: StepTape | DigestedTape) -> None:
        """Record the digests of every value and gradient of the last step, which was handed over without its tape.

        Raises:
            TraceWriteError: the file cannot be written.
        """
        made = tape if isinstance(tape, DigestedTape) else self._digested(tape)
        self._schedule.spend(self._writer.ops(made.nodes, tuple(made.values), tuple(made.grads)))

    def _digested(self, tape: StepTape) -> DigestedTape:
        grads = [None if grad is None else self.digest(grad) for grad in tape.grads]
        return DigestedTape(tape.nodes, [self.digest(value) for value in tape.values], grads)

    @property
    def algorithm(self) -> Algorithm:
        """By what the trace is digested."""
        return self._algorithm

    def digest(self, array: Array) -> bytes:
        """The digest of an array in this trace."""
        return tensor_digest(self._algorithm, array)

    def _keep_values(self, done: CompletedStep) -> None:
        """Write elements of the last step recorded, as far as the budget goes."""
        if not self._values_budget:
            return
        kept = kept_values(self._layout, self._algorithm, self._last.record(done.step), done, self._values_budget)
        if kept:
            front = encode_values(self._layout, [(tensor.what, tensor.position) for tensor in kept])
            self._writer.told(VALUES, front, [raw(tensor.array) for tensor in kept])

    def validation(self, figures: Mapping[str, float]) -> None:
        """Record what was measured on other data after the last step, by name, such as `validation_loss`.

        A second validation of the same step is not recorded: a resumed run may measure once more.

        Raises:
            DomainError: no step is recorded, no figure, or one that no trace can hold.
            TraceWriteError: the file cannot be written.
        """
        if not self._writer.steps:
            raise DomainError("recorder.validation: expected a step to be recorded before")
        front = encode_figures(VALIDATION, self._layout, "recorder.validation: figures", figures)
        if not self._writer.has_told(VALIDATION):
            self._writer.told(VALIDATION, front)

    def commit(self) -> None:
        """Return once everything recorded so far is on the disk.

        Call it before you save a checkpoint, so that the trace is never behind the checkpoint.

        Raises:
            TraceWriteError: the file cannot be written.
        """
        self._writer.commit()

    def note(self, record: NotesRecord) -> None:
        """Write the user's notes on the run, with the host and the time.

        Raises:
            DomainError: more than 128 KiB in all.
            TraceWriteError: the file cannot be written.
        """
        self._writer.note(NOTES, NOTES.front(self._layout).encode(notes=record))

    def calls(self, first: int, calls: Sequence[CalledOp]) -> None:
        """Write calls of ops of the step that runs, from its call ``first`` on, and hand them to the system at once.

        Raises:
            DomainError: more than 4 MiB in all.
            TraceWriteError: the file cannot be written.
        """
        front = encode_front_of_calls(self._layout, CallsRecord(first, tuple(calls)))
        self._writer.note(CALLS, front)
        self._called += len(front)
        self._writer.flush()

    def event(self, kind: str, text: str) -> None:
        """Write a note into the trace: a kind of `a-z0-9_-` and a text, 64 KiB in all.

        Raises:
            DomainError: another kind, or too long a text.
            TraceWriteError: the file cannot be written.
        """
        self._writer.event(kind, text)

    def seal(self) -> None:
        """End the trace and give it its final name.

        Where the state after the last step was not digested, and not settled, the arrays handed to the last `step`
        are read again: they must not have changed since. After a `step` that raised, the final state is left out.

        Raises:
            TraceWriteError: the file cannot be written.
        """
        if (last := self._last.done) is not None:
            if last.step > 0:
                self._keep_values(last)
            if self._sketches:
                made = sketches_of(self._layout, self._last.record(last.step), last)
                self._writer.told(SKETCHES, encode_sketches(self._layout, made))
        self._writer.seal(self._last.digests())

    def close(self) -> None:
        """Leave the trace unsealed, readable as `PATH.partial`; no effect on a sealed or closed one."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and not self._writer.closed:
                self.seal()
        finally:
            self.close()

    def _keyframe_front(self, now: Snapshot) -> tuple[bytes, bytes]:
        """The front, and the state root in it."""
        root = state_root(self._algorithm, now.digests)
        drawn = self._generators() if self._mode.has_keyframes else b""
        return KEYFRAME.front(self._layout).encode(generator=drawn, cursor=b"", digests=now.digests, root=root), root

    def _keyframe(self, now: Snapshot) -> None:
        body = [raw(a) for a in now.arrays] if self._mode.has_keyframes else []
        self._writer.keyframe(*self._keyframe_front(now), body)
        self._keyframes.wrote(self._writer.steps)


def _without_arrays(done: CompletedStep) -> CompletedStep:
    """A step whose arrays are not needed any more: they may be memory that its owner wants back."""
    return CompletedStep(step=done.step, loss=done.loss, hyper=done.hyper, grads={}, params={}, state={}, batch=())

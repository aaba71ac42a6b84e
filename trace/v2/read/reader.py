"""Reading a trace: random access to steps, in bounded memory, every frame checked when it is read."""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Self, TypeAlias, overload

import numpy as np

from ....base import system
from ....base.arrays import Array
from ....base.runs.called_op import CalledOp
from ....base.system import FilePath
from ...file_version import open_regular
from ..errors import NotRecordedError, UnsealedTraceWarning
from ..format.constants import PARTIAL_SUFFIX
from ..format.documents.notes import NotesRecord
from ..format.frames import EVENT, NOTES, EventRecord
from ..format.header import Header
from ..format.limits import Limits
from ..format.of_step import VALIDATION
from .locate import Locator, ReadMode
from .op_digests import OpDigests
from .publish_sealed import publish_sealed
from .recorded import RecordedValues, What
from .source import FrameSource, Source
from .step_view import StepView

TraceLike: TypeAlias = "FilePath | TraceReader"
"""A trace by its path, or open."""


class TraceReader(Sequence[StepView]):
    """What an open trace has recorded. `len(trace)` steps, `trace[i]` one of them.

    `header` and `schema` say what is recorded; `sealed` whether the run was finished; `damage` is what ended
    the reading of a damaged file in the modes that allow it, or, in mode `salvage`, the first that is wrong with it.
    """

    def __init__(self, path: str, limits: Limits, mode: ReadMode) -> None:
        self.path = path
        self._descriptor = open_regular(path)
        try:
            self._read(limits, mode)
        except BaseException:
            self.close()
            raise

    def _read(self, limits: Limits, mode: ReadMode) -> None:
        self._frames = FrameSource(Source(self._descriptor, limits, self.path))
        self._locator = Locator(self._frames, mode)
        self.header: Header = self._frames.header
        self.schema = self._locator.schema
        self.layout = self._locator.layout
        self.seal = self._locator.seal
        self.damage = self._locator.damage
        self._recorded = RecordedValues(self._locator)

    @property
    def hyperparameters(self) -> tuple[str, ...]:
        """The names of a step's `hyper`, in their order."""
        return self._recorded.hyperparameters

    @property
    def sealed(self) -> bool:
        """Whether the run was finished and the file sealed."""
        return self.seal is not None

    @property
    def root(self) -> bytes:
        """The last digest of the file chain that was read: of a sealed file, what stands for all of it."""
        return self._locator.root

    @property
    def missing(self) -> tuple[tuple[int, int], ...]:
        """In mode `salvage` the steps that are not whole, as ranges (first, last); else none."""
        return self._locator.missing

    @property
    def chained(self) -> tuple[tuple[int, int], ...]:
        """In mode `salvage` the ranges (first, last) of steps that belong together, as the state chain says; else none.

        Where one range ends and another begins, steps are missing, or the second is of another run than the first.
        """
        return self._locator.chained

    @property
    def salvaged(self) -> bool:
        """Whether frames behind damage are read. Then nothing that is read proves anything of the run."""
        return self._locator.salvaged

    def __len__(self) -> int:
        return self._locator.steps

    @overload
    def __getitem__(self, index: int) -> StepView: ...
    @overload
    def __getitem__(self, index: slice) -> list[StepView]: ...
    def __getitem__(self, index: int | slice) -> StepView | list[StepView]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return StepView(self._recorded, *self._locator.step(self._checked(index)))

    def __iter__(self) -> Iterator[StepView]:
        return (StepView(self._recorded, *self._locator.step(i)) for i in self._locator.there)

    @property
    def loss(self) -> Array:
        """The loss of every step, float32 or float64, NaN of one that is missing; read anew at each call."""
        losses = {view.step: view.record.loss for view in self}
        dtype = next(iter(losses.values())).dtype if losses else np.float64
        found = np.full(len(self), np.nan, dtype)
        for step, loss in losses.items():
            found[step] = loss
        return found

    def tensor(self, name: str, *, step: int, what: What = "grad") -> Array:
        """A recorded tensor of one step: a param's gradient, or a tensor before or after the step.

        Raises:
            NotRecordedError: the trace holds no such value; `dgrr.trace.state_after` recomputes states.
            InvalidTraceError: the file is damaged there.
        """
        return self._recorded.tensor(name, self._checked(step), what)

    def sketch(self, name: str, *, step: int, what: What = "grad") -> tuple[float, ...] | None:
        """The sketch of a tensor of one step, 16 numbers; None where none is recorded, as in most traces.

        Raises InvalidTraceError where the file is damaged.
        """
        return self._recorded.sketch(name, self._checked(step), what)

    def ops(self, step: int) -> OpDigests | None:
        """The digests of everything that a step computed; None where they are not recorded.

        Raises:
            IndexError: there is no such step.
            InvalidTraceError: the file is damaged there.
        """
        return self._recorded.ops(self._checked(step))

    def calls(self, step: int) -> tuple[CalledOp, ...]:
        """Every call of an op inside a step, in the order in which they ran; none where they are not recorded.

        They are written while the step runs. So `step` may be `len(trace)`, the one at which a run has ended: what it
        called last may be why.

        Raises:
            IndexError: there is no such step.
            InvalidTraceError: the file is damaged there.
        """
        return self._recorded.calls(step if step == len(self) else self._checked(step))

    def metrics(self, step: int) -> dict[str, float]:
        """What the loss function gave to be shown at a step, by name: the means over its micro-batches.

        Empty where nothing is recorded of it. Metrics are recorded, not proven: they stand outside of the state chain.

        Raises:
            IndexError: there is no such step.
            InvalidTraceError: the file is damaged there.
        """
        return self._recorded.metrics(self._checked(step))

    def validation(self, step: int) -> dict[str, float]:
        """What was measured on other data behind a step, as `validation_loss`; empty where nothing was, or is recorded.

        Told, not proven, as metrics are.

        Raises:
            IndexError: there is no such step.
            InvalidTraceError: the file is damaged there.
        """
        return self._recorded.validation(self._checked(step))

    def validations(self) -> dict[int, dict[str, float]]:
        """Every validation of the run, by the step behind which it stands; one pass over the heads.

        Raises InvalidTraceError where the file is damaged.
        """
        return dict(self._locator.every(VALIDATION))

    @property
    def notes(self) -> dict[str, Any]:
        """What the user noted of the run, given as `Keep(notes=...)`, a resumed run's as given last; or no entries."""
        noted = self.noted()
        return noted[-1][1].notes if noted else {}

    def noted(self) -> list[tuple[int, NotesRecord]]:
        """All that is noted: with the user's notes the host and the time, and the number of steps before.

        There is one where the run begins, and one where it was resumed, of runs that were recorded with notes. One
        pass over the heads. Told, not proven.
        """
        return list(self._locator.every(NOTES))

    def shown(self, step: int) -> dict[str, Any]:
        """What is told of a step beside its STEP, as `dgrr inspect` shows it, by the name of what tells it."""
        return self._recorded.shown(self._checked(step))

    def gradients(self, step: int) -> dict[str, Array]:
        """All recorded gradients of a step by name. Raises NotRecordedError in mode `digest`."""
        return self[step].gradients()

    def buffers(self, step: int) -> dict[str, Array]:
        """All buffers after a step by name; empty in mode `digest`."""
        return self[step].buffers()

    def keyframe(self, step: int) -> dict[str, Array]:
        """The whole state before `step` by name. Raises NotRecordedError where there is no keyframe."""
        self._require_keyframe(step)
        if not self.header.mode.has_keyframes:
            raise NotRecordedError("trace.keyframe: a trace of record mode 'bare' holds no states; record 'digest'")
        return self._recorded.keyframe(step)

    def _require_keyframe(self, step: int) -> None:
        if not self.has_keyframe(step):
            raise NotRecordedError(f"trace: there is no keyframe before step {step}")

    def has_keyframe(self, step: int) -> bool:
        """Whether there is a KEYFRAME before `step`."""
        return self._locator.has_keyframe(step)

    @property
    def keyframes(self) -> tuple[int, ...]:
        """The steps before which the whole state is recorded, in their order; each INDEX is read."""
        return self._locator.keyframes

    def last_keyframe(self, step: int) -> int:
        """The number of the last KEYFRAME at or before `step`."""
        return self._locator.last_keyframe(step)

    def keyframe_digests(self, step: int) -> dict[str, bytes]:
        """Tensor → digest in the KEYFRAME before `step`. Raises NotRecordedError where there is none."""
        self._require_keyframe(step)
        digests = self._locator.keyframe(step)[1].digests
        return {t.name: d for t, d in zip(self.schema.tensors, digests, strict=True)}

    def generators(self, step: int) -> bytes:
        """The state of random generators in the KEYFRAME before `step`. Raises NotRecordedError where there is none."""
        self._require_keyframe(step)
        return self._locator.keyframe(step)[1].generator

    def events(self, before: int | None = None) -> Iterator[tuple[int, EventRecord]]:
        """Every EVENT with the number of steps before it, or those before so many steps; one pass over the heads."""
        return self._locator.every(EVENT, before)

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._descriptor >= 0:
            system.release(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        seal = "sealed" if self.sealed else "unsealed"
        mode = self.header.mode.name.lower()
        lost = sum(last - first + 1 for first, last in self.missing)
        seal += f", damaged, {lost} steps missing" if self.salvaged else ""
        return f"<trace {self.path}: {len(self)} steps, {seal}, mode {mode}, {len(self.schema.tensors)} tensors>"

    def _checked(self, step: int) -> int:
        index = step + len(self) if step < 0 else step
        if not 0 <= index < len(self):
            raise IndexError(f"trace: expected a step from 0 to {len(self) - 1}, got {step}")
        return index


def open_reader(path: FilePath, *, limits: Limits | None = None, mode: ReadMode = "strict") -> TraceReader:
    """Open a trace for reading; see `dgrr.trace.open_trace`, whose trace can also show itself and travel."""
    return TraceReader(*opened(path, limits, mode))


def reading(trace: TraceLike) -> AbstractContextManager[TraceReader]:
    """A trace that is open stays it; one by its path is opened, up to a torn tail, for as long as it is looked at."""
    return nullcontext(trace) if isinstance(trace, TraceReader) else open_reader(trace, mode="tolerate_tail")


def opened(path: FilePath, limits: Limits | None, mode: ReadMode) -> tuple[str, Limits, ReadMode]:
    """What a reader of a trace takes, where the trace may be unfinished or sealed without its name."""
    name = os.fspath(path)
    partial = name + PARTIAL_SUFFIX
    if os.path.exists(partial) and (os.path.exists(name) or not publish_sealed(name)):
        text = f"{name} does not exist; reading the unfinished {partial}"
        if os.path.exists(name):
            text = f"reading {name}, but {partial} exists too: a longer run, or a later one, is unfinished or goes on"
        else:
            name = partial
        warnings.warn(text, UnsealedTraceWarning, stacklevel=3)
    return name, limits or Limits(), mode

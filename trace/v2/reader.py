"""Reading a trace: random access to steps, in bounded memory, every frame checked when it is read."""

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias, overload

import numpy as np

from ..sniff import open_regular
from .damage import judge
from .digest import NUMPY_DTYPES, Array, TensorDigest
from .errors import DamageError, NotRecordedError, TraceError, UnsealedTraceWarning
from .file import PARTIAL_SUFFIX
from .format import HEADER_LENGTH, SEAL_MAGIC, SEAL_TAIL, STEPS_PER_INDEX, FrameType
from .header import Header
from .keyframe import KeyframeRecord, decode_keyframe
from .layout import Extent
from .limits import Limits
from .marks import EventRecord, IndexRecord, SealRecord, decode_index, decode_seal
from .source import Frame, FrameSource, Source
from .step import StepRecord
from .verdict import Verdict
from .walk import Prologue, Walk, read_step

Mode: TypeAlias = Literal["strict", "tolerate_tail", "point_in_time"]
What: TypeAlias = Literal["grad", "after", "before"]


class StepView:
    """One recorded step.

    Attributes are those of the step's record (`step`, `loss`, `hyper` by name, `corrections`, `clip`,
    `micro_batches`, `input_digest`, `grad_digests` and `state_digests` by tensor name, `root`, `link`).
    """

    def __init__(self, trace: "Trace", record: StepRecord) -> None:
        self._trace = trace
        self.record = record
        self.step = record.step
        self.loss = record.loss[()]
        self.clip = record.clip
        self.micro_batches = record.micro_batches
        self.corrections = record.corrections
        self.input_digest = record.input_digest
        self.link = record.link
        self.root = record.root

    @property
    def hyper(self) -> dict[str, float]:
        """Hyperparameter → value used. Where several groups have the name, that of the last."""
        names = [name for group in self._trace.schema.groups for name in group.hyperparameters]
        return dict(zip(names, self.record.hyper, strict=True))

    @property
    def grad_digests(self) -> dict[str, bytes]:
        """Param → digest of its gradient; params without one are absent."""
        tensors = self._trace.schema.tensors
        return {tensors[i].name: d for i, d in zip(self.record.grads, self.record.digests, strict=False)}

    @property
    def state_digests(self) -> dict[str, bytes]:
        """Tensor → digest after the step; empty where the state is not due."""
        if self.root is None:
            return {}
        digests = self.record.state_in_order(self._trace.layout)
        return {t.name: d for t, d in zip(self._trace.schema.tensors, digests, strict=True)}

    def grad(self, name: str) -> Array:
        """The recorded gradient of a param. Raises NotRecordedError."""
        return self._trace.tensor(name, step=self.step, what="grad")

    def __repr__(self) -> str:
        return f"<step {self.step}: loss {self.loss!r}, {len(self.record.grads)} gradients>"


class Trace(Sequence[StepView]):
    """An open trace; made by `open_trace`. `len(trace)` steps, `trace[i]` one of them.

    `header` and `schema` say what is recorded; `sealed` whether the run was finished; `damage` is what ended
    the reading of a damaged file in the modes that allow it.
    """

    def __init__(self, descriptor: int, path: str, limits: Limits, mode: Mode) -> None:
        self.path = path
        self._descriptor = descriptor
        self._frames = FrameSource(Source(descriptor, limits))
        self.header: Header = self._frames.header
        self.damage: TraceError | None = None
        self._index_of: dict[int, IndexRecord] = {}
        prologue = Prologue(self._frames)
        self._prologue = prologue
        self.schema = prologue.schema
        self.layout = prologue.layout
        self._digests = [TensorDigest(self._frames.algorithm, t.dtype, t.shape) for t in self.schema.tensors]
        self.seal = self._find_seal()
        self._walk = None if self.seal else self._scan(mode)

    @property
    def sealed(self) -> bool:
        """Whether the run was finished and the file sealed."""
        return self.seal is not None

    def __len__(self) -> int:
        return self.seal.steps if self.seal else len(self._offsets)

    @overload
    def __getitem__(self, index: int) -> StepView: ...
    @overload
    def __getitem__(self, index: slice) -> list[StepView]: ...
    def __getitem__(self, index: int | slice) -> StepView | list[StepView]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return StepView(self, self._record(self._checked(index))[1])

    def __iter__(self) -> Iterator[StepView]:
        return (self[i] for i in range(len(self)))

    @property
    def loss(self) -> Array:
        """The loss of every step, float32 or float64, read anew at each call."""
        losses = np.array([view.record.loss for view in self])
        return losses if len(self) else np.empty(0, np.float64)

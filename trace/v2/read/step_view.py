"""One recorded step: what its STEP says, and what else is recorded of it."""

from typing import Any

from ....base.arrays import Array
from ....base.runs.called_op import CalledOp
from ....base.runs.completed_step import Order
from ..errors import NotRecordedError
from ..format.constants import StepFlag, TensorRole
from ..format.layout import BodyExtent
from ..format.step import STEP, StepRecord
from .op_digests import OpDigests
from .recorded import RecordedValues, What
from .source import Frame


class StepView:
    """One recorded step.

    Attributes are those of the step's record (`step`, `loss`, `hyper` by name, `corrections`, `clip`,
    `micro_batches`, `input_digest`, `root`, `link`; by tensor name `grad_digests`, `buffer_digests`, `state_digests`).
    """

    def __init__(self, recorded: RecordedValues, frame: Frame, record: StepRecord | None) -> None:
        self._recorded, self._frame, self._record = recorded, frame, record
        self._schema, self._layout = recorded.locator.schema, recorded.locator.layout
        self.step = frame.step
        self.front: bytes = frame.front
        """All that is recorded of the step but values of tensors, as the file has it."""

    @property
    def record(self) -> StepRecord:
        """What the STEP says, by the fields of its front."""
        if self._record is None:
            self._record = self._recorded.locator.record(self._frame)
        return self._record

    @property
    def loss(self) -> Any:
        """The loss before the update, a numpy scalar."""
        return self.record.loss[()]

    @property
    def clip(self) -> tuple[float, float] | None:
        """Bound and scale of clipping by norm; None where nothing was clipped."""
        return self.record.clip

    @property
    def micro_batches(self) -> int:
        """How many batches in turn the step is of."""
        return self.record.micro_batches

    @property
    def corrections(self) -> tuple[float, ...]:
        """The bias corrections of its rules, group by group."""
        return self.record.corrections

    @property
    def input_digest(self) -> bytes:
        """Of its batch."""
        return self.record.input_digest

    @property
    def link(self) -> bytes:
        """Of the state chain."""
        return self.record.link

    @property
    def root(self) -> bytes | None:
        """Of the state after the step; None where it is not due."""
        return self.record.root

    @property
    def hyper(self) -> dict[str, float]:
        """Hyperparameter → value used; those of groups of params but the first have its number, as `lr#1`."""
        return dict(zip(self._recorded.hyperparameters, self.record.hyper, strict=True))

    @property
    def nonfinite(self) -> bool:
        """Whether the loss, or a gradient as the optimizer consumed it, is infinite or NaN."""
        return StepFlag.NON_FINITE in self.record.flags

    @property
    def order(self) -> Order:
        """How the gradients of micro-batches were added: one after the other, or in pairs, level by level."""
        return "tree" if StepFlag.TREE in self.record.flags else "chain"

    @property
    def clip_value(self) -> float | None:
        """The bound of every element of the gradients; None where they were not clipped by value."""
        return self.record.hyper[0] if self._schema.clips_by_value else None

    @property
    def grad_digests(self) -> dict[str, bytes]:
        """Param → digest of its gradient; params without one are absent."""
        tensors = self._schema.tensors
        return {tensors[i].name: d for i, d in zip(self.record.grads, self.record.digests, strict=False)}

    @property
    def buffer_digests(self) -> dict[str, bytes]:
        """Buffer → digest after the step."""
        names = [t.name for t in self._schema.tensors[self._layout.states :]]
        return dict(zip(names, self.record.digests[len(self.record.grads) :], strict=False))

    @property
    def state_digests(self) -> dict[str, bytes]:
        """Tensor → digest after the step; empty where the state is not due."""
        if self.root is None:
            return {}
        digests = self.record.state_in_order(self._layout)
        return {t.name: d for t, d in zip(self._schema.tensors, digests, strict=True)}

    @property
    def content(self) -> bytes:
        """What the state chain holds of the step: its front without link and batch id."""
        return STEP.front(self._layout).chained(self.front)

    def body_into(self, memory: memoryview) -> None:
        """Read the first bytes of the body to a place; none of them is held against its digest.

        Raises InvalidTraceError.
        """
        self._recorded.locator.frames.body_into(self._frame, memory)

    def grad(self, name: str) -> Array:
        """The recorded gradient of a param. Raises NotRecordedError."""
        return self._recorded.tensor(name, self.step, "grad")

    def gradients(self) -> dict[str, Array]:
        """All recorded gradients by name; read at each call. Raises NotRecordedError in mode `digest`."""
        mode = self._recorded.locator.frames.header.mode
        if not mode.has_gradients:
            raise NotRecordedError(f"trace.gradients: a trace of record mode {mode.name.lower()!r} holds no gradients")
        return self._load("grad")

    def after(self) -> dict[str, Array]:
        """The tensors whose values after the step are recorded in it, by name; read at each call."""
        return self._load("after")

    def buffers(self) -> dict[str, Array]:
        """All buffers after the step by name; read at each call. Empty in mode `digest`."""
        return self._load("after", TensorRole.BUFFER)

    def ops(self) -> OpDigests | None:
        """The digests of everything the step computed; None if not recorded."""
        return self._recorded.ops(self.step)

    def calls(self) -> tuple[CalledOp, ...]:
        """Every call of an op inside the step, in the order in which they ran; none where they are not recorded."""
        return self._recorded.calls(self.step)

    def metrics(self) -> dict[str, float]:
        """The metrics that the loss function returned, by name; empty if none are recorded."""
        return self._recorded.metrics(self.step)

    def validation(self) -> dict[str, float]:
        """What was measured on other data after the step, by name; empty if nothing is recorded."""
        return self._recorded.validation(self.step)

    def shown(self) -> dict[str, Any]:
        """What else is told of the step and has no method of its own here, by the name of what tells it."""
        return self._recorded.shown(self.step)

    def extents(self) -> list[BodyExtent]:
        """What the body of the STEP holds, and where."""
        return self._layout.step_body(self.step, self.record.grads, self.record.digests)

    def _load(self, what: What, role: TensorRole | None = None) -> dict[str, Array]:
        tensors = self._schema.tensors
        chosen = [e for e in self.extents() if e.what == what and role in (None, tensors[e.tensor].role)]
        return {tensors[e.tensor].name: self._recorded.load(self._frame, e) for e in chosen}

    def __repr__(self) -> str:
        return f"<step {self.step}: loss {self.loss!r}, {len(self.record.grads)} gradients>"

"""What is recorded of a step beside its STEP: values of tensors, and the digests of what it computed."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from ....base.arrays import Array
from ....base.runs.called_op import CalledOp
from ....base.runs.completed_step import TapeNode, of_group
from ..errors import InvalidTraceError, NotRecordedError
from ..format.digest import TensorDigest, numpy_dtype
from ..format.frame_type import FrameType, R
from ..format.frames import CALLS, FRAMES
from ..format.layout import BodyExtent
from ..format.of_step import METRICS, OPS, SKETCHES, VALIDATION, VALUES, Figures
from ..format.schema import CLIPPING
from ..format.step import StepRecord
from ..verdict import Verdict
from .locate import Locator
from .op_digests import OpDigests
from .record import read_record
from .source import Frame

What: TypeAlias = Literal["grad", "after", "before"]
_Body: TypeAlias = tuple[Frame, list[BodyExtent]]


class RecordedValues:
    """Tensors and digests of ops in one file, each held against its digest when it is read."""

    def __init__(self, locator: Locator) -> None:
        self.locator, self._frames = locator, locator.frames
        self._schema, self._layout = locator.schema, locator.layout
        self._nodes: dict[int, tuple[TapeNode, ...]] = {}
        algorithm = locator.frames.algorithm
        self._digests = [TensorDigest(algorithm, t.dtype, t.shape) for t in self._schema.tensors]

    @cached_property
    def hyperparameters(self) -> tuple[str, ...]:
        """The names of a step's `hyper`, in their order."""
        clipping = CLIPPING.hyperparameters if self._schema.clips_by_value else ()
        groups = enumerate(self._schema.rules)
        return *clipping, *[of_group(name, i) for i, group in groups for name in group.hyperparameters]

    def tensor(self, name: str, step: int, what: What) -> Array:
        """A tensor of one step. Raises NotRecordedError where the file has none."""
        position = self._schema.position.get(name)
        if position is None:
            names = ", ".join(t.name for t in self._schema.tensors[:8])
            raise NotRecordedError(f"trace.tensor: expected a name such as {names}; got {name!r}")
        found = self._find(position, step, what)
        if found is None:
            raise NotRecordedError(self._not_recorded(name, step, what))
        return self.load(*found)

    def ops(self, step: int) -> OpDigests | None:
        """The digests of everything that a step computed; None where they are not recorded."""
        found = self._told(step, OPS)
        if found is None:
            return None
        frame, record, _ = found
        if record.nodes_at not in self._nodes:
            self._nodes[record.nodes_at] = self.locator.nodes(record.nodes_at)
        nodes = self._nodes[record.nodes_at]
        if len(nodes) != len(record.values):
            raise InvalidTraceError(Verdict.CORRUPT, "an OPS frame names no NODES frame of its length", frame.offset)
        return OpDigests(nodes, record.values, record.grads)

    def sketch(self, name: str, step: int, what: What) -> tuple[float, ...] | None:
        """The sketch of a tensor of one step; None where none is recorded."""
        found = self._told(step, SKETCHES)
        return None if found is None else found[1].get((self._schema.position[name], what))

    def calls(self, step: int) -> tuple[CalledOp, ...]:
        """The calls of ops of a step, in the order in which they ran; of the last time, where a run was resumed."""
        found = list[CalledOp]()
        for record in self.locator.before_step(step, CALLS):
            found = [*found[: record.first], *record.calls]
        return tuple(found)

    def metrics(self, step: int) -> Figures:
        """The metrics of a step by name; none where none are recorded."""
        return self._figures(step, METRICS)

    def validation(self, step: int) -> Figures:
        """What was measured on other data behind a step, by name; nothing where nothing is recorded."""
        return self._figures(step, VALIDATION)

    def _figures(self, step: int, kind: FrameType[Figures]) -> Figures:
        found = self._told(step, kind)
        return {} if found is None else found[1]

    def shown(self, step: int) -> dict[str, Any]:
        """What else is told of a step, by the names of the types of frames that are shown as they are."""
        frames = self.locator.of_step(step)
        shown = {d.name.lower(): (d, frames[code]) for code, d in FRAMES.items() if d.shown and code in frames}
        return {name: d.shown(self._record(frame)[0]) for name, (d, frame) in shown.items() if d.shown}

    def _told(self, step: int, kind: FrameType[R]) -> tuple[Frame, R, list[BodyExtent]] | None:
        """A frame that tells more of a step, with what it says and its body, if there is one."""
        frame = self.locator.of_step(step).get(kind.code)
        return None if frame is None else (frame, *self._record(frame))

    def _record(self, frame: Frame) -> tuple[Any, list[BodyExtent]]:
        return read_record(self._layout, self._frames.source.limits, frame, lambda: self._step(frame.step)[1])

    def keyframe(self, step: int) -> dict[str, Array]:
        """The whole state of a KEYFRAME that exists."""
        frame, extents = self._keyframe_body(step)
        return {self._schema.tensors[e.tensor].name: self.load(frame, e) for e in extents}

    def load(self, frame: Frame, extent: BodyExtent) -> Array:
        """One tensor of a body, held against its digest. Raises InvalidTraceError."""
        spec = self._schema.tensors[extent.tensor]
        data = bytearray().join(self._frames.body_blocks(frame, extent.offset, extent.nbytes))
        if self._digests[extent.tensor].of_bytes(data) != extent.digest:
            raise InvalidTraceError(Verdict.CORRUPT, f"'{spec.name}' is not what its digest says", frame.offset)
        return np.frombuffer(data, numpy_dtype(spec.dtype)).reshape(spec.shape)

    def _find(self, position: int, step: int, what: What) -> tuple[Frame, BodyExtent] | None:
        places: list[_Body] = []
        if what != "before":
            places.append(self._step_body(step))
        elif step - 1 in self.locator.there:
            places.append(self._step_body(step - 1))
        number = step + (what == "after")
        if what != "grad" and self.locator.has_keyframe(number):
            places.append(self._keyframe_body(number))
        kinds = ("grad",) if what == "grad" else ("after", "before")
        return _first(places, position, kinds) or _first(self._kept_values(number - (what != "grad")), position, kinds)

    def _kept_values(self, step: int) -> list[_Body]:
        """The VALUES of a step, if there is one and it has them."""
        found = self._told(step, VALUES) if step in self.locator.there else None
        return [] if found is None else [(found[0], found[2])]

    def _step(self, step: int) -> tuple[Frame, StepRecord]:
        frame, record = self.locator.step(step)
        return frame, record or self.locator.record(frame)

    def _step_body(self, step: int) -> _Body:
        frame, record = self._step(step)
        return frame, self._layout.step_body(step, record.grads, record.digests)

    def _keyframe_body(self, step: int) -> _Body:
        frame, record = self.locator.keyframe(step)
        return frame, self._layout.keyframe_body(record.digests)

    def _not_recorded(self, name: str, step: int, what: What) -> str:
        mode = self._frames.header.mode.name.lower()
        if what == "grad":
            return (
                f"trace.tensor: no gradient of '{name}' is recorded at step {step} (record mode '{mode}'): "
                f"expected a param that was updated, in a trace recorded with record='grads'"
            )
        return (
            f"trace.tensor: '{name}' {what} step {step} is not recorded (record mode '{mode}'); "
            f"dgrr.trace.state_after recomputes it from the gradients, or record with record='full'"
        )


def _first(places: Sequence[_Body], position: int, kinds: Sequence[str]) -> tuple[Frame, BodyExtent] | None:
    """The first place of a tensor."""
    return next(
        ((frame, e) for frame, extents in places for e in extents if e.tensor == position and e.what in kinds), None
    )

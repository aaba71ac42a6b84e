"""One pass over a trace from its first byte: order, both chains and every derived number."""

from array import array
from collections.abc import Callable, Iterator
from typing import TypeAlias

from ....base.completed_step import TapeNode
from ..errors import DamageError, InvalidTraceError
from ..format.constants import (
    COMMIT,
    EVENT_BYTES,
    HEADER_LENGTH,
    INDEX,
    METRICS_BYTES,
    OPS,
    RESUME_BYTES,
    SEAL,
    SEAL_TAIL,
    SKIPPABLE,
    STEPS_PER_INDEX,
    TAG_RUN,
    U32_PAIR,
    FrameType,
    pad8,
)
from ..format.control_frames import EventRecord, IndexRecord, SealRecord, decode_event, decode_index, decode_seal
from ..format.digest import state_root
from ..format.keyframe import KeyframeRecord, decode_keyframe
from ..format.layout import FrameLayout
from ..format.metrics import MetricsRecord, decode_metrics
from ..format.nodes import decode_nodes
from ..format.ops import OpsRecord, decode_ops
from ..format.schema import Schema
from ..format.schema_json import decode_schema
from ..format.step import StepRecord, decode_step, run_content
from ..format.values import ValuesRecord, decode_values
from ..verdict import Verdict
from .source import Frame, FrameSource

Record: TypeAlias = (
    Schema
    | KeyframeRecord
    | StepRecord
    | IndexRecord
    | SealRecord
    | EventRecord
    | OpsRecord
    | ValuesRecord
    | MetricsRecord
    | tuple[TapeNode, ...]
    | None
)


class Prologue:
    """The SCHEMA of a file and what follows from it."""

    def __init__(self, frames: FrameSource) -> None:
        limits = frames.source.limits
        self.limits = limits
        self.frame = frames.frame(HEADER_LENGTH, limits.schema_bytes, frames.first_link)
        if (self.frame.type, self.frame.step, self.frame.seq) != (
            FrameType.SCHEMA,
            0,
            0,
        ) or self.frame.body_length:
            raise InvalidTraceError(Verdict.CORRUPT, "the first frame is not a SCHEMA", HEADER_LENGTH)
        header = frames.header
        self.schema = decode_schema(self.frame.front, limits)
        self.layout = FrameLayout(self.schema, frames.algorithm, header.mode, header.state_every)
        self.digest = frames.algorithm.hash(self.frame.front)

    def largest_front(self, type: int, size: int) -> int:
        """The largest front of a frame of this type in a file of `size` bytes."""
        layout = self.layout
        digests = layout.digest_size * (len(self.schema.tensors) + 1)
        smallest_step = layout.digests_at
        seal = SEAL.size + layout.digest_size + digests + SEAL_TAIL.size
        largest: dict[int, int] = {
            FrameType.KEYFRAME: layout.keyframe_front(RESUME_BYTES),
            FrameType.STEP: layout.step_front(layout.state_every - 1, self.schema.params),
            FrameType.COMMIT: COMMIT.size,
            FrameType.INDEX: INDEX.size + 8 * STEPS_PER_INDEX + 16 * (STEPS_PER_INDEX + 1),
            FrameType.SEAL: seal + 8 * (size // (smallest_step * STEPS_PER_INDEX) + 1),
            FrameType.EVENT: EVENT_BYTES,
            FrameType.NODES: self.limits.schema_bytes,
            FrameType.OPS: OPS.size + pad8(self.limits.nodes) // 8 + 2 * layout.digest_size * self.limits.nodes,
            FrameType.VALUES: U32_PAIR.size * (1 + len(self.schema.tensors) + self.schema.params),
            FrameType.METRICS: METRICS_BYTES,
        }
        return largest.get(type, 0)


class Walk:
    """The pass. Iterate over it once; its attributes say what has been met so far.

    `steps`: number of steps; `link`: S[steps - 1]; `root`: the last state root, and `root_step` the number of
    steps before it; `step_offsets`, `keyframes` (step, offset) and `indexes` (offsets); `committed`: the number
    of steps before the last COMMIT; `seal`; `end`: where the last whole frame ends; `chain`: the file chain
    there; `seq`: the number of the frame behind it.
    """

    def __init__(self, frames: FrameSource) -> None:
        self.frames = frames
        self.prologue = Prologue(frames)
        self.schema = self.prologue.schema
        self.layout = self.prologue.layout
        self.end = self.prologue.frame.end
        self.chain = self.prologue.frame.chain
        self.seq = self.prologue.frame.parts
        self.steps = 0
        self.link: bytes = b""
        self.root: bytes = b""
        self.root_step = 0
        self.step_offsets: array[int] = array("Q")
        self.keyframes: list[tuple[int, int]] = []
        self.indexes: list[int] = []
        self.committed = 0
        self.seal: SealRecord | None = None
        self._last: StepRecord | None = None
        self._nodes: dict[int, int] = {}
        self._told: set[int] = set()
        self._handlers: dict[int, Callable[[Frame], Record]] = {
            FrameType.KEYFRAME: self._keyframe,
            FrameType.STEP: self._step,
            FrameType.COMMIT: self._commit,
            FrameType.INDEX: self._index,
            FrameType.SEAL: self._seal,
            FrameType.EVENT: self._event,
            FrameType.NODES: self._list,
            FrameType.OPS: self._ops,
            FrameType.VALUES: self._values,
            FrameType.METRICS: self._metrics,
        }

    def __iter__(self) -> Iterator[tuple[Frame, Record]]:
        """Every frame from the SCHEMA on, with what it says (None: COMMIT and skipped types).

        Raises:
            DamageError: a frame is not whole; all before it is good.
            InvalidTraceError: `chain`, `corrupt` or `unsupported`.
        """
        yield self.prologue.frame, self.schema
        while self.end < self.frames.source.size:
            if self.seal is not None:
                raise InvalidTraceError(Verdict.CORRUPT, "bytes behind the SEAL", self.end)
            frame = self._next()
            record = self._handle(frame)
            self.end, self.chain, self.seq = frame.end, frame.chain, frame.seq + frame.parts
            yield frame, record
        if not self.keyframes:
            raise DamageError("the file ends before KEYFRAME 0", self.end)

    def _next(self) -> Frame:
        head = self.frames.head(self.end)
        if head.type not in self._handlers and head.type < SKIPPABLE:
            raise InvalidTraceError(Verdict.UNSUPPORTED, f"a frame of the unknown type {head.type}", self.end)
        if head.seq != self.seq:
            raise InvalidTraceError(Verdict.CHAIN, f"frame {head.seq} where frame {self.seq} is expected", self.end)
        largest = self.prologue.largest_front(head.type, self.frames.source.size)
        return self.frames.frame(self.end, largest, self.chain)

    def _handle(self, frame: Frame) -> Record:
        if not self.keyframes and frame.type != FrameType.KEYFRAME:
            raise InvalidTraceError(Verdict.CORRUPT, "the second frame is not a KEYFRAME", frame.offset)
        handler = self._handlers.get(frame.type)
        return None if handler is None else handler(frame)

    def _keyframe(self, frame: Frame) -> KeyframeRecord:
        layout = self.layout
        record = decode_keyframe(layout, self.frames.algorithm, frame.step, frame.front, frame.offset)
        again = bool(self.keyframes) and self.keyframes[-1][0] == frame.step
        if frame.step != self.steps or frame.step % layout.state_every or again:
            raise InvalidTraceError(Verdict.CORRUPT, f"KEYFRAME {frame.step} after {self.steps} steps", frame.offset)
        self._check_indexed(frame)
        if frame.body_length != self.layout.keyframe_bytes:
            raise InvalidTraceError(Verdict.CORRUPT, "the body of a KEYFRAME has not the derived length", frame.offset)
        if not self.keyframes:
            self.link = self.frames.algorithm.hash(TAG_RUN + self.prologue.digest + record.root)
        elif record.root != self.root:
            text = f"the root of KEYFRAME {frame.step} is not that of STEP {frame.step - 1}"
            raise InvalidTraceError(Verdict.CHAIN, text, frame.offset)
        self.root = record.root
        self.keyframes.append((frame.step, frame.offset))
        return record

    def _step(self, frame: Frame) -> StepRecord:
        if frame.step != self.steps:
            raise InvalidTraceError(
                Verdict.CORRUPT, f"STEP {frame.step} where STEP {self.steps} is expected", frame.offset
            )
        self._check_indexed(frame)
        record = read_step(self.frames, self.layout, frame)
        content = run_content(self.layout, frame.step, frame.front)
        if record.link != self.frames.algorithm.hash(self.link + content):
            text = f"the link of STEP {frame.step} in the state chain is wrong"
            raise InvalidTraceError(Verdict.CHAIN, text, frame.offset)
        self.link = record.link
        self._last, self._told = record, set()
        self.steps += 1
        self.step_offsets.append(frame.offset)
        if record.root is not None:
            self.root, self.root_step = record.root, self.steps
        return record

    def _commit(self, frame: Frame) -> None:
        if frame.front != COMMIT.pack(self.steps, frame.offset):
            raise InvalidTraceError(Verdict.CORRUPT, "a COMMIT has the wrong counts", frame.offset)
        self._check_mark(frame)
        self.committed = self.steps

    def _event(self, frame: Frame) -> EventRecord:
        self._check_mark(frame)
        return decode_event(self.frames.header, frame.front, frame.offset)

    def _list(self, frame: Frame) -> tuple[TapeNode, ...]:
        self._of_last_step(frame)
        nodes = decode_nodes(frame.front, self.frames.source.limits, frame.offset)
        self._nodes[frame.offset] = len(nodes)
        return nodes

    def _ops(self, frame: Frame) -> OpsRecord:
        self._of_last_step(frame)
        record = decode_ops(frame.front, self.layout.digest_size, frame.offset)
        if self._nodes.get(record.nodes_at) != len(record.values) or frame.body_length:
            raise InvalidTraceError(Verdict.CORRUPT, "an OPS frame names no NODES frame of its length", frame.offset)
        return record

    def _values(self, frame: Frame) -> ValuesRecord:
        record = decode_values(self.layout, self._of_last_step(frame), frame.front, frame.offset)
        if frame.body_length != sum(e.nbytes for e in record.extents):
            raise InvalidTraceError(
                Verdict.CORRUPT, "the body of a VALUES frame has not the derived length", frame.offset
            )
        return record

    def _metrics(self, frame: Frame) -> MetricsRecord:
        self._of_last_step(frame)
        if frame.body_length:
            raise InvalidTraceError(Verdict.CORRUPT, "a METRICS frame has a body", frame.offset)
        return decode_metrics(frame.step, frame.front, self.frames.source.limits, frame.offset)

    def _of_last_step(self, frame: Frame) -> StepRecord:
        """The STEP that a frame tells of: the last one, once for each type."""
        if self._last is None or frame.step != self._last.step or frame.type in self._told:
            name = FrameType(frame.type).name
            raise InvalidTraceError(Verdict.CORRUPT, f"{name} {frame.step} after {self.steps} steps", frame.offset)
        self._told.add(frame.type)
        return self._last

    def _index(self, frame: Frame) -> IndexRecord:
        record = decode_index(frame.front, frame.offset)
        if record != self.expected_index() or frame.step != record.first or frame.body_length:
            raise InvalidTraceError(Verdict.CORRUPT, "an INDEX is not what the file makes it", frame.offset)
        self.indexes.append(frame.offset)
        return record

    def _check_indexed(self, frame: Frame) -> None:
        if len(self.indexes) != self.steps // STEPS_PER_INDEX:
            raise InvalidTraceError(Verdict.CORRUPT, "an INDEX is missing or stands too early", frame.offset)

    def expected_index(self) -> IndexRecord:
        """The INDEX that would list what the INDEX frames so far do not."""
        first = len(self.indexes) * STEPS_PER_INDEX
        steps = tuple(self.step_offsets[first : first + STEPS_PER_INDEX])
        keyframes = tuple(pair for pair in self.keyframes if pair[0] // STEPS_PER_INDEX == len(self.indexes))
        return IndexRecord(first, self.indexes[-1] if self.indexes else 0, steps, keyframes)

    def _seal(self, frame: Frame) -> SealRecord:
        layout = self.layout
        record = decode_seal(frame.front, frame.offset, layout.digest_size, len(self.schema.tensors))
        self._check_mark(frame)
        if (record.steps, record.link, record.indexes) != (self.steps, self.link, tuple(self.indexes)):
            raise InvalidTraceError(Verdict.CORRUPT, "the SEAL does not list what the file holds", frame.offset)
        rest = self.expected_index()
        if rest.steps or rest.keyframes:
            raise InvalidTraceError(Verdict.CORRUPT, "a step or keyframe before the SEAL is in no INDEX", frame.offset)
        self._check_final(record, frame.offset)
        self.seal = record
        return record

    def _check_final(self, seal: SealRecord, offset: int) -> None:
        if not seal.final:
            return
        *digests, root = seal.final
        known = self.root_step == self.steps
        if root != state_root(self.frames.algorithm, digests) or (known and root != self.root):
            raise InvalidTraceError(Verdict.CHAIN, "the final state of the SEAL is not that of the last step", offset)

    def _check_mark(self, frame: Frame) -> None:
        if frame.step != self.steps or frame.body_length:
            raise InvalidTraceError(Verdict.CORRUPT, "a frame has a body or another number of steps", frame.offset)


def read_step(frames: FrameSource, layout: FrameLayout, frame: Frame) -> StepRecord:
    """Decode a STEP and hold its body against the derived length.

    Raises:
        InvalidTraceError: `corrupt`.
    """
    record = decode_step(layout, frame.step, frame.front, frame.offset)
    extents = layout.step_body(frame.step, record.grads, record.digests)
    expected = extents[-1].offset + extents[-1].nbytes if extents else 0
    if frame.body_length != expected:
        raise InvalidTraceError(
            Verdict.CORRUPT, f"the body of STEP {frame.step} has not the derived length", frame.offset
        )
    if record.root is not None and record.root != state_root(frames.algorithm, record.state_in_order(layout)):
        text = f"the state root of STEP {frame.step} is not that of its digests"
        raise InvalidTraceError(Verdict.CORRUPT, text, frame.offset)
    return record

"""One pass over a trace from its first byte: order, both chains and every derived number."""

from array import array
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..errors import DamageError, InvalidTraceError
from ..format.constants import HEADER_LENGTH, SKIPPABLE, STEPS_PER_INDEX, TAG_RUN
from ..format.digest import state_root
from ..format.frame_type import FramePlace
from ..format.frames import COMMIT, FRAMES, INDEX, KEYFRAME, SCHEMA, SEAL, IndexRecord, KeyframeRecord, SealRecord
from ..format.layout import BodyExtent, FrameLayout
from ..format.of_step import NODES, OPS, OpsRecord
from ..format.schema_json import decode_schema
from ..format.step import STEP, StepRecord, step_link
from ..verdict import Verdict
from .record import read_record
from .source import Frame, FrameSource


class Prologue:
    """The SCHEMA of a file and what follows from it."""

    def __init__(self, frames: FrameSource) -> None:
        self._limits, self._source = frames.source.limits, frames.source
        self.frame = frame = frames.frame(HEADER_LENGTH, self._limits.schema_bytes, frames.first_link)
        if (frame.type, frame.step, frame.seq, frame.body_length) != (SCHEMA.code, 0, 0, 0):
            raise InvalidTraceError(Verdict.CORRUPT, "the first frame is not a SCHEMA", HEADER_LENGTH)
        self.schema = decode_schema(self.frame.front, self._limits)
        self.layout = FrameLayout(self.schema, frames.header)
        self.digest = frames.algorithm.hash(self.frame.front)
        self._largest: dict[tuple[int, int], int] = {}

    def largest_front(self, type: int) -> int:
        """The largest front of a frame of this type in this file."""
        key = type, self._source.size
        if key not in self._largest:
            declared = FRAMES.get(type)
            self._largest[key] = declared.front(self.layout).largest(self._limits, key[1]) if declared else 0
        return self._largest[key]


class Passed(NamedTuple):
    """What the last of some STEPs says: the file chain behind it, its link and front, the state root or nothing."""

    chain: bytes
    link: bytes
    front: bytes
    root: bytes


class Walk:
    """The pass. Iterate over it once; its attributes say what has been met so far.

    `steps`: number of steps; `link`: S[steps - 1]; `root`: the last state root, and `root_step` the number of
    steps before it; `step_offsets`, `keyframes` (step, offset) and `indexes` (offsets); `committed`: the number
    of steps before the last COMMIT; `seal`; `end`: where the last whole frame ends; `chain`: the file chain
    there; `seq`: the number of the frame behind it; `told`: the types of frames that tell more of the last step;
    `extents`: the tensors in the body of the frame that was met last.
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
        self.extents: list[BodyExtent] = []
        self._last: bytes | StepRecord | None = None
        self._nodes: dict[int, int] = {}
        self.told: set[int] = set()
        self._rules: dict[int, Callable[[Frame, Any], None]] = {
            KEYFRAME.code: self._keyframe,
            STEP.code: self._step,
            COMMIT.code: self._commit,
            INDEX.code: self._index,
            SEAL.code: self._seal,
            NODES.code: self._list,
            OPS.code: self._ops,
        }
        """What types ask of the file before them, beside what their declarations say."""

    def __iter__(self) -> Iterator[tuple[Frame, Any]]:
        """Every frame from the SCHEMA on, with what it says (None: skipped types).

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
        if head.type not in FRAMES and head.type < SKIPPABLE:
            raise InvalidTraceError(Verdict.UNSUPPORTED, f"a frame of the unknown type {head.type}", self.end)
        if head.seq != self.seq:
            raise InvalidTraceError(Verdict.CHAIN, f"frame {head.seq} where frame {self.seq} is expected", self.end)
        return self.frames.frame(self.end, self.prologue.largest_front(head.type), self.chain)

    def _handle(self, frame: Frame) -> Any:
        if not self.keyframes and frame.type != KEYFRAME.code:
            raise InvalidTraceError(Verdict.CORRUPT, "the second frame is not a KEYFRAME", frame.offset)
        self._check_place(frame)
        record, self.extents = read_record(self.layout, self.frames.source.limits, frame, self._last_step)
        rule = self._rules.get(frame.type)
        if rule is not None:
            rule(frame, record)
        return record

    def _check_place(self, frame: Frame) -> None:
        """Hold the number of a frame against where it stands, by the declaration of its type."""
        declared = FRAMES.get(frame.type)
        if declared is None:
            return
        match declared.place:
            case FramePlace.FIRST:
                fits = False
            case FramePlace.AFTER:
                fits = self.steps > 0 and frame.step == self.steps - 1 and frame.type not in self.told
                self.told.add(frame.type)
            case FramePlace.LISTING:
                fits = frame.step == len(self.indexes) * STEPS_PER_INDEX
            case _:
                fits = frame.step == self.steps
        if not fits:
            text = f"{declared.name} {frame.step} after {self.steps} steps"
            raise InvalidTraceError(Verdict.CORRUPT, text, frame.offset)

    def _last_step(self) -> StepRecord:
        """The STEP that was met last."""
        if isinstance(self._last, bytes):
            self._last = STEP.front(self.layout).decode(self.steps - 1, self._last)
        assert self._last is not None
        return self._last

    def pass_over(self, steps: int, span: int, last: Passed) -> None:
        """Go on behind so many STEPs of as many bytes each, which were found to be what they must be."""
        self.step_offsets.extend(range(self.end, self.end + steps * span, span))
        self.steps, self.seq, self.end = self.steps + steps, self.seq + steps, self.end + steps * span
        self.chain, self.link, self._last, self.told = last.chain, last.link, last.front, set()
        if last.root:
            self.root, self.root_step = last.root, self.steps

    def _keyframe(self, frame: Frame, record: KeyframeRecord) -> None:
        again = bool(self.keyframes) and self.keyframes[-1][0] == frame.step
        if frame.step % self.layout.state_every or again:
            raise InvalidTraceError(Verdict.CORRUPT, f"KEYFRAME {frame.step} after {self.steps} steps", frame.offset)
        self._check_indexed(frame)
        if not self.keyframes:
            self.link = self.frames.algorithm.hash(TAG_RUN + self.prologue.digest + record.root)
        elif record.root != self.root:
            text = f"the root of KEYFRAME {frame.step} is not that of STEP {frame.step - 1}"
            raise InvalidTraceError(Verdict.CHAIN, text, frame.offset)
        self.root = record.root
        self.keyframes.append((frame.step, frame.offset))

    def _step(self, frame: Frame, record: StepRecord) -> None:
        self._check_indexed(frame)
        if record.link != step_link(self.layout, self.link, frame.step, frame.front):
            text = f"the link of STEP {frame.step} in the state chain is wrong"
            raise InvalidTraceError(Verdict.CHAIN, text, frame.offset)
        self.link = record.link
        self._last, self.told = record, set()
        self.steps += 1
        self.step_offsets.append(frame.offset)
        if record.root is not None:
            self.root, self.root_step = record.root, self.steps

    def _commit(self, frame: Frame, record: tuple[int, int]) -> None:
        if record != (self.steps, frame.offset):
            raise InvalidTraceError(Verdict.CORRUPT, "a COMMIT has the wrong counts", frame.offset)
        self.committed = self.steps

    def _list(self, frame: Frame, record: tuple[object, ...]) -> None:
        self._nodes[frame.offset] = len(record)

    def _ops(self, frame: Frame, record: OpsRecord) -> None:
        if self._nodes.get(record.nodes_at) != len(record.values):
            raise InvalidTraceError(Verdict.CORRUPT, "an OPS frame names no NODES frame of its length", frame.offset)

    def _index(self, frame: Frame, record: IndexRecord) -> None:
        if record != self.expected_index():
            raise InvalidTraceError(Verdict.CORRUPT, "an INDEX is not what the file makes it", frame.offset)
        self.indexes.append(frame.offset)

    def _check_indexed(self, frame: Frame) -> None:
        if len(self.indexes) != self.steps // STEPS_PER_INDEX:
            raise InvalidTraceError(Verdict.CORRUPT, "an INDEX is missing or stands too early", frame.offset)

    def expected_index(self) -> IndexRecord:
        """The INDEX that would list what the INDEX frames so far do not."""
        first = len(self.indexes) * STEPS_PER_INDEX
        steps = tuple(self.step_offsets[first : first + STEPS_PER_INDEX])
        keyframes = tuple(pair for pair in self.keyframes if pair[0] // STEPS_PER_INDEX == len(self.indexes))
        return IndexRecord(first, self.indexes[-1] if self.indexes else 0, steps, keyframes)

    def _seal(self, frame: Frame, record: SealRecord) -> None:
        if (record.steps, record.link, record.indexes) != (self.steps, self.link, tuple(self.indexes)):
            raise InvalidTraceError(Verdict.CORRUPT, "the SEAL does not list what the file holds", frame.offset)
        rest = self.expected_index()
        if rest.steps or rest.keyframes:
            raise InvalidTraceError(Verdict.CORRUPT, "a step or keyframe before the SEAL is in no INDEX", frame.offset)
        self._check_final(record, frame.offset)
        self.seal = record

    def _check_final(self, seal: SealRecord, offset: int) -> None:
        if not seal.final:
            return
        *digests, root = seal.final
        known = self.root_step == self.steps
        if root != state_root(self.frames.algorithm, digests) or (known and root != self.root):
            raise InvalidTraceError(Verdict.CHAIN, "the final state of the SEAL is not that of the last step", offset)

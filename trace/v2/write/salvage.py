"""What of a damaged trace is whole: its frames one by one, and the stretches of steps that they make.

A frame is believed by its head, front, chain digest and bodies. Steps belong together if the state chain joins them,
whatever was lost between them. So a stretch goes on behind a lost COMMIT, INDEX, KEYFRAME or EVENT; behind a lost
STEP the next one begins at the next KEYFRAME, which holds a whole state.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..check.validate import check_body, tensor_digests
from ..errors import InvalidTraceError
from ..format.constants import ALIGNMENT, EVENT_BYTES, KNOWN, SKIPPABLE, TAG_RUN, FrameType
from ..format.control_frames import EventRecord, SealRecord, decode_event, decode_seal
from ..format.digest import state_root
from ..format.frame import Head
from ..format.keyframe import KeyframeRecord, decode_keyframe
from ..format.nodes import decode_nodes
from ..format.ops import OpsRecord, decode_ops
from ..format.step import StepRecord
from ..format.values import ValuesRecord, decode_values
from ..read.damage import READ_AGAIN, sync_words
from ..read.scan import Prologue, Record, read_step
from ..read.source import Frame, FrameSource
from ..verdict import Verdict

_DERIVED = (FrameType.COMMIT, FrameType.INDEX)


@dataclass(slots=True)
class Stretch:
    """Steps `first` to `end - 1`, with the state before them: `offsets` of its frames, the KEYFRAME first."""

    first: int
    end: int
    offsets: list[int]
    chain: bytes
    """The file chain behind its last frame."""
    link: bytes | None
    """The state chain behind its last step; None where that is not known."""
    root: bytes
    """The last state root, and how many steps are before it."""
    root_step: int
    sealed: bool = False
    last: StepRecord | None = None
    last_keyframe: int = 0
    told: set[int] = field(default_factory=set[int])
    nodes: set[int] = field(default_factory=set[int])


class Salvage:
    """One pass over a file: `stretches` of whole steps, and what is `lost`.

    `lost` counts frames that held something, by the name of their type; `lost_bytes` are in no stretch, without what
    a writer makes anew; `seen`: as many steps, at least, the file had.

    Raises:
        InvalidTraceError: header or SCHEMA are not whole, the file cannot be read, or it is of a newer writer.
    """

    def __init__(self, frames: FrameSource) -> None:
        self.frames = frames
        self.prologue = Prologue(frames)
        self.layout = self.prologue.layout
        self.stretches: list[Stretch] = []
        self.lost: Counter[str] = Counter()
        self.lost_bytes = 0
        self.seen = 0
        self._current: Stretch | None = None
        self._nodes: dict[int, int] = {}
        self._beginning: list[int] = []
        self._digests = tensor_digests(frames, self.layout)
        self._allowance = READ_AGAIN * frames.source.size
        for frame in self._whole_frames():
            if not self._take(frame):
                self._leave_out(frame.type, frame.end - frame.offset)
        later = frames.header.numerics != 0  # of another library, an EVENT tells of params at the beginning alone
        self.stretches = [s for s in self.stretches if s.first == 0 or (later and s.end > s.first)]

    def records(self, stretch: Stretch) -> Iterator[tuple[Frame, Record]]:
        """The frames of a stretch with what they say; behind its first KEYFRAME what was noted before step 0."""
        last: StepRecord | None = None
        first, *others = stretch.offsets
        for offset in (first, *(self._beginning if stretch.first else ()), *others):
            frame = self._frame(offset)
            record = self._decode(frame, last)
            last = record if isinstance(record, StepRecord) else last
            yield frame, record

    def _whole_frames(self) -> Iterator[Frame]:
        """Every whole frame behind the SCHEMA up to a SEAL that fits."""
        offset, seq = self.prologue.frame.end, self.prologue.frame.parts
        while offset < self.frames.source.size and not (self._current and self._current.sealed):
            frame = self._whole(offset)
            if frame is None:
                frame = self._next_whole(offset)
                self._note_hole(offset, seq, frame)
            if frame is None:
                return
            yield frame
            offset, seq = frame.end, frame.seq + frame.parts

    def _frame(self, offset: int) -> Frame:
        head = self.frames.head(offset)
        if head.type < SKIPPABLE and head.type not in KNOWN:
            raise InvalidTraceError(Verdict.UNSUPPORTED, f"a frame of the unknown type {head.type}", offset)
        return self.frames.frame(offset, self.prologue.largest_front(head.type, self.frames.source.size))

    def _whole(self, offset: int) -> Frame | None:
        try:
            return self._frame(offset)
        except InvalidTraceError as error:
            _require_damage(error)
            return None

    def _next_whole(self, offset: int) -> Frame | None:
        """The first whole frame behind damage."""
        for at in sync_words(self.frames, offset + ALIGNMENT):
            frame = self._whole(at)
            if frame is not None:
                return frame
            head = self._head(at)
            self._allowance -= head.front_length if head else 0
            if self._allowance < 0:
                return None
        return None

    def _head(self, offset: int) -> Head | None:
        try:
            return self.frames.lone_head(offset)
        except InvalidTraceError as error:
            _require_damage(error)
            return None

    def _note_hole(self, offset: int, seq: int, behind: Frame | None) -> None:
        """Count what the heads that are left of it tell of a hole, and one unknown frame if they do not tell all."""
        end = self.frames.source.size if behind is None else behind.offset
        while offset < end and (head := self._head(offset)) is not None:
            size = min(head.span(self.frames.algorithm.size), end - offset)
            self._leave_out(head.type, size)
            if head.type == FrameType.STEP:
                self.seen = max(self.seen, head.step + 1)
            offset += size
            seq += 1
        if offset < end or (behind is not None and behind.seq != seq):
            self.lost["unknown"] += 1
            self.lost_bytes += end - offset

    def _leave_out(self, type: int, size: int) -> None:
        known = self._current is not None and self._current.root_step == self._current.end
        if type in _DERIVED or (type == FrameType.SEAL and known):
            return
        self.lost[FrameType(type).name if type in KNOWN else f"type {type}"] += 1
        self.lost_bytes += size

    def _take(self, frame: Frame) -> bool:
        """Whether a whole frame fits the stretch, or begins one."""
        stretch = self._current
        try:
            record = self._decode(frame, stretch.last if stretch else None)
            check_body(self.frames, self.layout, self._digests, frame, record)
        except InvalidTraceError as error:
            _require_damage(error)
            return False
        if isinstance(record, KeyframeRecord):
            return self._keyframe(frame, record)
        if isinstance(record, StepRecord):
            self.seen = max(self.seen, record.step + 1)
        if isinstance(record, SealRecord):
            self.seen = max(self.seen, record.steps)
        if isinstance(record, tuple):
            self._nodes[frame.offset] = len(record)
            return True  # it is kept with the first OPS that names it
        return stretch is not None and self._fits(stretch, frame, record) and self._add(stretch, frame)

    def _decode(self, frame: Frame, last: StepRecord | None) -> Record:
        """What a frame says. Raises InvalidTraceError where that is against the format."""
        front, offset, layout = frame.front, frame.offset, self.layout
        match frame.type:
            case FrameType.KEYFRAME:
                return decode_keyframe(layout, self.frames.algorithm, frame.step, front, offset)
            case FrameType.STEP:
                return read_step(self.frames, layout, frame)
            case FrameType.SEAL:
                return decode_seal(front, offset, layout.digest_size, len(layout.schema.tensors))
            case FrameType.EVENT if len(front) <= EVENT_BYTES:
                return decode_event(front, offset)
            case FrameType.NODES:
                return decode_nodes(front, self.frames.source.limits, offset)
            case FrameType.OPS:
                return decode_ops(front, layout.digest_size, offset)
            case FrameType.VALUES if last is not None and last.step == frame.step:
                return decode_values(layout, last, front, offset)
            case _:
                return None

    def _keyframe(self, frame: Frame, record: KeyframeRecord) -> bool:
        stretch, step = self._current, record.step
        if frame.body_length != self.layout.keyframe_bytes or step % self.layout.state_every:
            return False
        if stretch is not None and step == stretch.end:
            fits = stretch.last_keyframe != step and record.root == stretch.root
            stretch.last_keyframe = step
            return fits and self._add(stretch, frame)
        if self.stretches and step < self.stretches[-1].end:
            return False
        hash = self.frames.algorithm.hash
        link = None if step else hash(TAG_RUN + self.prologue.digest + record.root)
        self._current = Stretch(step, step, [frame.offset], frame.chain, link, record.root, step, last_keyframe=step)
        self.stretches.append(self._current)
        return True

    def _fits(self, stretch: Stretch, frame: Frame, record: Record) -> bool:
        match record:
            case StepRecord():
                return self._step(stretch, frame, record)
            case OpsRecord(nodes_at=at):
                known = self._nodes.get(at) == len(record.values) and not frame.body_length
                fits = known and self._is_told_once(stretch, frame)
                if fits and at not in stretch.nodes:
                    stretch.nodes.add(at)
                    stretch.offsets.append(at)
                return fits
            case ValuesRecord():
                length = sum(e.nbytes for e in record.extents)
                return frame.body_length == length and self._is_told_once(stretch, frame)
            case EventRecord() if frame.step == stretch.end and not frame.body_length:
                if stretch.first == stretch.end == 0:
                    self._beginning.append(frame.offset)
                return True
            case SealRecord():
                stretch.sealed = self._ends(stretch, record)
                return stretch.sealed
            case _:
                return False

    def _step(self, stretch: Stretch, frame: Frame, record: StepRecord) -> bool:
        content = record.run_content(self.layout, frame.front)
        joined = stretch.link is None or record.link == self.frames.algorithm.hash(stretch.link + content)
        if record.step != stretch.end or not joined:
            if record.step >= stretch.end:
                self._current = None  # steps are missing before it
            return False
        stretch.end += 1
        stretch.link, stretch.last, stretch.told = record.link, record, set()
        if record.root is not None:
            stretch.root, stretch.root_step = record.root, stretch.end
        return True

    def _is_told_once(self, stretch: Stretch, frame: Frame) -> bool:
        """Whether a frame tells of the last step, for the first time."""
        fits = stretch.last is not None and stretch.last.step == frame.step and frame.type not in stretch.told
        stretch.told.add(frame.type)
        return fits

    def _ends(self, stretch: Stretch, seal: SealRecord) -> bool:
        if seal.steps != stretch.end or seal.link != stretch.link:
            return False
        *digests, root = seal.final or (b"",)
        due = stretch.root_step == stretch.end
        return not seal.final or (
            root == state_root(self.frames.algorithm, digests) and (not due or root == stretch.root)
        )

    def _add(self, stretch: Stretch, frame: Frame) -> bool:
        stretch.offsets.append(frame.offset)
        stretch.chain = frame.chain
        return True


def _require_damage(error: InvalidTraceError) -> None:
    """Raise what is no damage of the file: the system, or a newer writer."""
    if error.verdict in (Verdict.IO, Verdict.UNSUPPORTED):
        raise error

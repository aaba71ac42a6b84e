"""The intact part of a damaged trace: its frames one by one, and the stretches of steps that they form.

A frame is believed by its head, front, chain digest and bodies. Steps belong together if the state chain joins them,
whatever was lost between them. So a stretch goes on behind a lost COMMIT, INDEX, KEYFRAME or EVENT; behind a lost
STEP the next one begins at the next KEYFRAME, which holds a whole state.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from ..check.validate import check_body, tensor_digests
from ..errors import InvalidTraceError
from ..format.constants import TAG_RUN
from ..format.digest import state_root
from ..format.frame_type import FramePlace
from ..format.frames import FRAMES, SEAL, KeyframeRecord, SealRecord
from ..format.of_step import NODES, OpsRecord
from ..format.step import STEP, StepRecord, step_link
from ..read.record import read_record
from ..read.source import Frame
from ..read.whole_frames import Hole, require_damage
from .halves import UNKNOWN, Half, Key, in_order, key_of, key_of_head
from .rewrite import Copied

Spot: TypeAlias = tuple[Half, int]
"""A frame by its file and its offset."""


@dataclass(slots=True)
class Stretch:
    """Steps `first` to `end - 1`, with the state before them: the `places` of its frames, the KEYFRAME first."""

    first: int
    end: int
    places: list[Spot]
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
    nodes: dict[int, Half] = field(default_factory=dict[int, Half])
    """The lists of nodes among the places: offset → the half that was read last there."""
    runs: list[tuple[Half, int]] = field(default_factory=list[tuple[Half, int]])
    """Where steps begin to be from a half, up to the next such place."""


class Salvage:
    """One pass over a file, or over the halves of one run: `stretches` of whole steps, and what is `lost`.

    `lost` counts frames that held something, by the name of their type; `lost_bytes` are in no stretch, without what
    a writer makes anew; `seen`: as many steps, at least, there were. What another half has is not lost.

    Raises:
        InvalidTraceError: a file cannot be read, or is of a newer writer; halves are not of one run.
    """

    def __init__(self, halves: Sequence[Half]) -> None:
        first = halves[0]
        self.header, self.prologue, self.layout = first.frames.header, first.whole.prologue, first.whole.prologue.layout
        self.stretches: list[Stretch] = []
        self.lost: Counter[str] = Counter()
        self.lost_bytes = 0
        self.seen = 0
        self.handed_over: set[tuple[Half, Half]] = set()
        """Halves of which the second goes on with the step behind one of the first."""
        self._current: Stretch | None = None
        self._nodes: dict[tuple[Half, int], int] = {}
        self._beginning: list[Spot] = []
        self._digests = tensor_digests(first.frames, self.layout)
        self._left: list[tuple[Half, Key, int]] = []
        self._taken: dict[Key, Half] = {}
        for half, met in in_order(halves):
            if isinstance(met, Hole):
                self._note_hole(half, met)
            elif not self._is_held(half, met) and not self._take(half, met):
                self._leave_out(half, key_of(met), met.end - met.offset)
            if len(halves) == 1 and self._current and self._current.sealed:
                break  # what stands behind a SEAL is nothing
        self._count_lost()
        later = self.header.numerics != 0  # of another library, an EVENT tells of params at the beginning alone
        self.stretches = [s for s in self.stretches if s.first == 0 or (later and s.end > s.first)]

    def taken_from(self, half: Half) -> tuple[tuple[int, int], ...]:
        """The steps of all stretches that are from a half, as ranges (first, last)."""
        found = list[tuple[int, int]]()
        for stretch in self.stretches:
            ends = [start for _, start in stretch.runs[1:]] + [stretch.end]
            found += [(start, end - 1) for (of, start), end in zip(stretch.runs, ends, strict=False) if of is half]
        return tuple(found)

    def records(self, stretch: Stretch) -> Iterator[Copied]:
        """The frames of a stretch with what they say; behind its first KEYFRAME what was noted before step 0."""
        last: StepRecord | None = None
        first, *others = stretch.places
        for half, offset in (first, *(self._beginning if stretch.first else ()), *others):
            frame = half.whole.frame(offset)
            record, _ = read_record(self.layout, half.frames.source.limits, frame, partial(_same, last))
            last = record if isinstance(record, StepRecord) else last
            yield half.frames, frame, record

    def _is_held(self, half: Half, frame: Frame) -> bool:
        """Whether another half has given this frame already."""
        return self._taken.get(key_of(frame), half) is not half

    def _note_hole(self, half: Half, hole: Hole) -> None:
        """Count what the heads that are left of it tell of a hole, and one unknown frame if they do not tell all."""
        for head, size in hole.heads:
            self._leave_out(half, key_of_head(head), size)
            if head.type == STEP.code:
                self.seen = max(self.seen, head.step + 1)
        if hole.hides:
            self._left.append((half, UNKNOWN, hole.rest))

    def _leave_out(self, half: Half, key: Key, size: int) -> None:
        known = self._current is not None and self._current.root_step == self._current.end
        if not key.derived and not (key.type == SEAL.code and known):
            self._left.append((half, key, size))

    def _count_lost(self) -> None:
        """Count what no other half has, and once what several have lost."""
        of = dict(self._taken)
        for half, key, size in self._left:
            if key == UNKNOWN or of.setdefault(key, half) is half:
                self.lost[key.name] += 1
                self.lost_bytes += size

    def _take(self, half: Half, frame: Frame) -> bool:
        """Whether a whole frame fits the stretch, or begins one."""
        stretch = self._current
        try:
            last = stretch.last if stretch else None
            record, extents = read_record(self.layout, half.frames.source.limits, frame, partial(_same, last))
            check_body(half.frames, self.layout, self._digests, frame, extents)
        except InvalidTraceError as error:
            require_damage(error)
            return False
        if frame.type == NODES.code:
            self._nodes[half, frame.offset] = len(record)
            return True  # it is kept with the first OPS that names it
        if isinstance(record, StepRecord):
            self.seen = max(self.seen, record.step + 1)
        if isinstance(record, SealRecord):
            self.seen = max(self.seen, record.steps)
        if isinstance(record, KeyframeRecord):
            fits = self._keyframe(half, frame, record)
        else:
            fits = stretch is not None and self._fits(stretch, half, frame, record) and _add(stretch, half, frame)
        if fits:
            self._taken.setdefault(key_of(frame), half)
        return fits

    def _keyframe(self, half: Half, frame: Frame, record: KeyframeRecord) -> bool:
        stretch, step = self._current, record.step
        if step % self.layout.state_every:
            return False
        if stretch is not None and step == stretch.end:
            fits = stretch.last_keyframe != step and record.root == stretch.root
            stretch.last_keyframe = step
            return fits and _add(stretch, half, frame)
        if self.stretches and step < self.stretches[-1].end:
            return False
        hash = self.header.algorithm.hash
        link = None if step else hash(TAG_RUN + self.prologue.digest + record.root)
        self._current = Stretch(
            step, step, [(half, frame.offset)], frame.chain, link, record.root, step, last_keyframe=step
        )
        self.stretches.append(self._current)
        return True

    def _fits(self, stretch: Stretch, half: Half, frame: Frame, record: Any) -> bool:
        declared = FRAMES.get(frame.type)
        match declared and declared.place:
            case FramePlace.STEP:
                return self._step(stretch, half, frame, record)
            case FramePlace.AFTER:
                return self._is_told_once(stretch, frame) and self._has_nodes(stretch, half, record)
            case FramePlace.BETWEEN if declared and declared.is_note and frame.step == stretch.end:
                if stretch.first == stretch.end == 0:
                    self._beginning.append((half, frame.offset))
                return True
            case FramePlace.LAST:
                stretch.sealed = self._ends(stretch, record)
                return stretch.sealed
            case _:
                return False

    def _has_nodes(self, stretch: Stretch, half: Half, record: Any) -> bool:
        """Whether the list that OPS name is there; it is kept with the first of them."""
        if not isinstance(record, OpsRecord):
            return True
        at = record.nodes_at
        known = self._nodes.get((half, at)) == len(record.values)
        if known and stretch.nodes.get(at) is not half:
            stretch.nodes[at] = half
            stretch.places.append((half, at))
        return known

    def _step(self, stretch: Stretch, half: Half, frame: Frame, record: StepRecord) -> bool:
        link = stretch.link
        joined = link is None or record.link == step_link(self.layout, link, frame.step, frame.front)
        if record.step != stretch.end or not joined:
            if record.step >= stretch.end:
                self._current = None  # steps are missing before it
            return False
        if stretch.runs and stretch.runs[-1][0] is not half:
            self.handed_over.add((stretch.runs[-1][0], half))
        if not stretch.runs or stretch.runs[-1][0] is not half:
            stretch.runs.append((half, stretch.end))
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
            root == state_root(self.header.algorithm, digests) and (not due or root == stretch.root)
        )


def _same(step: StepRecord | None) -> StepRecord | None:
    return step


def _add(stretch: Stretch, half: Half, frame: Frame) -> bool:
    stretch.places.append((half, frame.offset))
    stretch.chain = frame.chain
    return True

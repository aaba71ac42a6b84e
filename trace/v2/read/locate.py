"""Finding frames: by the SEAL and its INDEX frames in a sealed file, by one pass in any other."""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ....base.runs.completed_step import TapeNode
from ..errors import DamageError, InvalidTraceError, NotRecordedError
from ..format.constants import HEADER_LENGTH, SEAL_MAGIC, STEPS_PER_INDEX
from ..format.frame import Head
from ..format.frame_type import FramePlace, FrameType, R
from ..format.frames import (
    FRAMES,
    INDEX,
    KEYFRAME,
    SEAL,
    SEAL_TAIL,
    IndexRecord,
    KeyframeRecord,
    SealRecord,
)
from ..format.of_step import NODES
from ..format.step import STEP, StepRecord
from ..verdict import Verdict
from .damage import judge
from .record import read_record
from .salvaged import Salvaged
from .scan import Prologue, Walk
from .source import Frame, FrameSource
from .worth import WORTH, is_worth_preparing

if TYPE_CHECKING:
    from .prepared.steps_ahead import StepsAhead

ReadMode: TypeAlias = Literal["strict", "tolerate_tail", "point_in_time", "salvage"]

_REFUSED = (Verdict.IO, Verdict.UNSUPPORTED)
"""Of what no mode reads on."""


class Locator:
    """Where the frames of one file stand. Every frame is checked when it is read.

    `seal`: None in an unsealed file; `damage`: what ended the pass over a damaged one, where the mode allows it.
    """

    def __init__(self, frames: FrameSource, mode: ReadMode) -> None:
        self.frames = frames
        self._prologue = _prologue(frames)
        self.schema = self._prologue.schema
        self.layout = self._prologue.layout
        self.damage: InvalidTraceError | None = None
        self._cached: tuple[int, IndexRecord] | None = None
        self._ahead: StepsAhead | None = None
        self._last, self._in_turn = -1, 0
        self.seal = None if mode == "salvage" else self._find_seal()
        self._walk: Walk | Salvaged | None = None if self.seal else self._scan(mode)
        found = self._walk if isinstance(self._walk, Salvaged) else None
        self.there: Collection[int] = dict.fromkeys(sorted(found.step_offsets)) if found else range(self.steps)
        """The steps that are there, in turn."""

    @property
    def steps(self) -> int:
        """Number of steps."""
        if self._walk is not None:
            return self._walk.steps
        return self.seal.steps if self.seal else 0

    @property
    def salvaged(self) -> bool:
        """Whether it is a damaged file, of which all is read that is whole."""
        return isinstance(self._walk, Salvaged)

    @property
    def missing(self) -> tuple[tuple[int, int], ...]:
        """The steps below `steps` that are not there, as ranges (first, last)."""
        return self._walk.missing if isinstance(self._walk, Salvaged) else ()

    @property
    def chained(self) -> tuple[tuple[int, int], ...]:
        """Ranges (first, last) of steps of a damaged file that the state chain joins."""
        return tuple(self._walk.chained) if isinstance(self._walk, Salvaged) else ()

    @property
    def root(self) -> bytes:
        """The file chain behind the last frame that is read."""
        return self.frames.chain_before(self._walk.end if self._walk else self.frames.source.size)

    def step(self, step: int) -> tuple[Frame, StepRecord | None]:
        """A STEP below `steps`, with what it says if that was looked at. Raises NotRecordedError if it is not there."""
        if step not in self.there:
            text = f"trace: step {step} is not whole in this damaged file; trace.missing says which are not"
            raise NotRecordedError(text)
        if self._ahead is not None and (frame := self._ahead.get(step)) is not None:
            return frame, None
        frame, record = self._read(self._step_offset(step), STEP, step)
        self._in_turn = self._in_turn + 1 if step == self._last + 1 else 0
        self._last = step
        if self._ahead is None and self._in_turn >= WORTH and is_worth_preparing(self.steps - step):
            self._ahead = self._steps_ahead()
        if self._ahead is not None:
            self._ahead.learn(frame)
        return frame, record

    def record(self, frame: Frame) -> StepRecord:
        """What a STEP says that `step` gave."""
        return STEP.front(self.layout).decode(frame.step, frame.front, frame.offset, self.frames.source.limits)

    def _steps_ahead(self) -> "StepsAhead":
        from .prepared.steps_ahead import StepsAhead  # compiled, and so loaded only where it pays

        return StepsAhead(self.frames, self.layout, self._step_offset, self.steps)

    def _step_offset(self, step: int) -> int:
        if self._walk is not None:
            return self._walk.step_offsets[step]
        number, place = divmod(step, STEPS_PER_INDEX)
        return self._index(number).steps[place]

    def keyframe(self, step: int) -> tuple[Frame, KeyframeRecord]:
        """A KEYFRAME that exists."""
        offset = self._keyframe_offset(step)
        assert offset is not None
        return self._read(offset, KEYFRAME, step)

    def of_step(self, step: int) -> dict[int, Frame]:
        """The frames that tell more of a step than its STEP, by type; one pass over the heads up to the next."""
        frame, _ = self.step(step)
        found: dict[int, Frame] = {}
        for offset, head in self._heads(frame.end):
            declared = FRAMES.get(head.type)
            if declared in (STEP, SEAL):
                break
            if declared and declared.place is FramePlace.AFTER and head.step == step and not head.part:
                found[head.type] = self._frame(offset, declared)
        return found

    def before_step(self, step: int, kind: FrameType[R]) -> list[R]:
        """What the frames of a type say that stand behind the last step before one, and before that itself.

        `step` may be the number of steps: what stands behind the last. The frames have no body.
        """
        found = list[R]()
        for offset, head in self._heads(self.step(step - 1)[0].end if step else self._prologue.frame.end):
            if head.type in (STEP.code, SEAL.code):
                break
            if head.type == kind.code and head.step == step:
                found.append(kind.front(self.layout).decode(step, self._frame(offset, kind).front, offset))
        return found

    def nodes(self, offset: int) -> tuple[TapeNode, ...]:
        """The list of a NODES frame at an offset that an OPS frame names."""
        frame = self._frame(offset, NODES)
        return NODES.front(self.layout).decode(frame.step, frame.front, offset, self.frames.source.limits)

    def has_keyframe(self, step: int) -> bool:
        """Whether there is a KEYFRAME before `step`."""
        return self._keyframe_offset(step) is not None

    @property
    def keyframes(self) -> tuple[int, ...]:
        """The number of every KEYFRAME."""
        numbers = range(self.steps // STEPS_PER_INDEX + 1)
        return tuple(step for number in numbers for step, _ in self._keyframes(number))

    def last_keyframe(self, step: int) -> int:
        """The number of the last KEYFRAME at or before `step`."""
        for k in range(step // STEPS_PER_INDEX, -1, -1):
            before = [number for number, _ in self._keyframes(k) if number <= step]
            if before:
                return before[-1]
        if self.salvaged:
            raise NotRecordedError(f"trace: no keyframe at or before step {step} is whole in this damaged file")
        raise InvalidTraceError(Verdict.CORRUPT, "no INDEX lists KEYFRAME 0")

    def every(self, kind: FrameType[R], before: int | None = None) -> Iterator[tuple[int, R]]:
        """What each frame of a type says that has no body, and the step in its head; one pass over the heads.

        `before`: those alone that stand before so many steps.
        """
        for offset, head in self._heads(self._prologue.frame.end):
            if before is not None and head.type == STEP.code and head.step + 1 >= before:
                return
            if head.type == kind.code:
                yield head.step, kind.front(self.layout).decode(head.step, self._frame(offset, kind).front, offset)

    def _heads(self, offset: int) -> Iterator[tuple[int, Head]]:
        """The heads of the frames from an offset on, those of parts too, up to the end or to damage."""
        if isinstance(self._walk, Salvaged):
            yield from ((at, self.frames.head(at)) for at in self._walk.frames_from(offset))
            return
        end = self._walk.end if self._walk else self.frames.source.size
        while offset < end:
            head = self.frames.head(offset)
            yield offset, head
            offset += head.span(self.frames.algorithm.size)

    def _find_seal(self) -> SealRecord | None:
        """The SEAL by the last bytes of the file; None leaves the diagnosis to a scan."""
        source, size = self.frames.source, self.frames.algorithm.size
        try:
            offset, magic = SEAL_TAIL.unpack(source.read(source.size - size - SEAL_TAIL.size, SEAL_TAIL.size))
            if magic != SEAL_MAGIC or not HEADER_LENGTH < offset < source.size:
                return None
            frame = self._frame(offset, SEAL)
            seal = SEAL.front(self.layout).decode(frame.step, frame.front, offset)
        except InvalidTraceError as error:
            if error.verdict is Verdict.IO:
                raise
            return None
        listed = len(seal.indexes) * STEPS_PER_INDEX
        return seal if frame.end == source.size and listed - STEPS_PER_INDEX <= seal.steps <= listed else None

    def _scan(self, mode: ReadMode) -> Walk | Salvaged:
        walk = Walk(self.frames)
        try:
            for _ in walk:
                pass
        except DamageError as damage:
            self.damage = judge(self.frames, damage)
        except InvalidTraceError as error:
            self.damage = error
        if self.damage is not None and mode == "salvage" and self.damage.verdict not in _REFUSED:
            found = Salvaged(self.frames)
            self.seal = found.seal
            return found
        if self.damage is not None and not (
            mode == "point_in_time" or (mode == "tolerate_tail" and self.damage.verdict is Verdict.TORN_TAIL)
        ):
            raise self.damage
        self.seal = walk.seal
        return walk

    def _frame(self, offset: int, expected: FrameType[Any]) -> Frame:
        frame = self.frames.frame(offset, self._prologue.largest_front(expected.code))
        if frame.type != expected.code:
            raise InvalidTraceError(Verdict.CORRUPT, f"expected a frame of type {expected.name}", offset)
        return frame

    def _read(self, offset: int, expected: FrameType[R], step: int) -> tuple[Frame, R]:
        """A frame that stands at an offset, of this type and number, and what it says."""
        frame = self._frame(offset, expected)
        if frame.step != step:
            text = f"expected {expected.name} {step}, found {expected.name} {frame.step}"
            raise InvalidTraceError(Verdict.CORRUPT, text, offset)
        return frame, read_record(self.layout, self.frames.source.limits, frame)[0]

    def _index(self, number: int) -> IndexRecord:
        assert self.seal is not None
        if self._cached is None or self._cached[0] != number:
            offset = self.seal.indexes[number]
            index = INDEX.front(self.layout).decode(0, self._frame(offset, INDEX).front, offset)
            steps = min(self.seal.steps - number * STEPS_PER_INDEX, STEPS_PER_INDEX)
            if index.first != number * STEPS_PER_INDEX or len(index.steps) != steps:
                raise InvalidTraceError(Verdict.CORRUPT, f"INDEX {number} lists other steps", offset)
            self._cached = (number, index)
        return self._cached[1]

    def _keyframes(self, number: int) -> Sequence[tuple[int, int]]:
        """The keyframes of steps `number * 1024` and following, as (step, offset)."""
        if self._walk is not None:
            return [pair for pair in self._walk.keyframes if pair[0] // STEPS_PER_INDEX == number]
        assert self.seal is not None
        return self._index(number).keyframes if number < len(self.seal.indexes) else ()

    def _keyframe_offset(self, step: int) -> int | None:
        return dict(self._keyframes(step // STEPS_PER_INDEX)).get(step)


def _prologue(frames: FrameSource) -> Prologue:
    """The SCHEMA of a file. Raises InvalidTraceError: `torn-tail` if the file ends before it does."""
    try:
        return Prologue(frames)
    except DamageError as damage:
        raise judge(frames, damage) from damage

"""What can be read of a damaged file: the frames that are whole, wherever they stand."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator

from ..errors import InvalidTraceError
from ..format.constants import HEAD_LENGTH
from ..format.frames import KEYFRAME, SEAL, SealRecord
from ..format.layout import FrameLayout
from ..format.step import STEP, step_link
from .source import Frame, FrameSource
from .whole_frames import Hole, WholeFrames, require_damage


class Salvaged:
    """One pass over a file, as `Walk` is one, that goes on behind damage; nothing but frames and links is checked.

    `steps`: as many as it had, at least; `step_offsets` of those that are whole, by number; `keyframes` as (step,
    offset); `seal`: None where it is not whole; `offsets` of all whole frames; `end`: where the last one ends;
    `chained`: ranges (first, last) of steps that the state chain joins.
    """

    def __init__(self, frames: FrameSource) -> None:
        self.steps = 0
        self.step_offsets: dict[int, int] = {}
        self.keyframes: list[tuple[int, int]] = []
        self.seal: SealRecord | None = None
        self.offsets: array[int] = array("Q")
        self.chained: list[tuple[int, int]] = []
        self._link = b""
        self._most = frames.source.size // HEAD_LENGTH
        whole = WholeFrames(frames)
        self._layout = layout = whole.prologue.layout
        self.end = whole.prologue.frame.end
        for met in whole:
            if isinstance(met, Hole):
                self._note(max((head.step + 1 for head, _ in met.heads if head.type == STEP.code), default=0))
                continue
            self.offsets.append(met.offset)
            self.end = met.end
            if met.type == SEAL.code:
                self.seal = _seal(layout, met)
                self._note(self.seal.steps if self.seal else 0)
                break
            self._take(met)
        self.keyframes.sort()

    @property
    def missing(self) -> tuple[tuple[int, int], ...]:
        """The steps that are not whole, as ranges (first, last)."""
        there = sorted(self.step_offsets)
        gaps = [(a + 1, b - 1) for a, b in zip([-1, *there], [*there, self.steps], strict=True)]
        return tuple((first, last) for first, last in gaps if first <= last)

    def frames_from(self, offset: int) -> Iterator[int]:
        """The offsets of the whole frames from one on."""
        return iter(self.offsets[bisect_left(self.offsets, offset) :])

    def _take(self, frame: Frame) -> None:
        if frame.type == STEP.code and frame.step < self._most:
            if frame.step not in self.step_offsets:
                self._join(frame)
            self.step_offsets.setdefault(frame.step, frame.offset)
            self._note(frame.step + 1)
        elif frame.type == KEYFRAME.code:
            self.keyframes.append((frame.step, frame.offset))

    def _join(self, frame: Frame) -> None:
        """Append a step to the last range, if its link goes on behind that one's last, or else begin another."""
        link, step = frame.front[: self._layout.digest_size], frame.step
        first, last = self.chained[-1] if self.chained else (step, -1)
        if last == step - 1 >= 0 and link == step_link(self._layout, self._link, step, frame.front):
            self.chained[-1] = first, step
        else:
            self.chained.append((step, step))
        self._link = link

    def _note(self, steps: int) -> None:
        """There were so many steps, unless the file says more than it could hold."""
        if steps <= self._most:
            self.steps = max(self.steps, steps)


def _seal(layout: FrameLayout, frame: Frame) -> SealRecord | None:
    try:
        return SEAL.front(layout).decode(frame.step, frame.front, frame.offset)
    except InvalidTraceError as error:
        require_damage(error)
        return None

"""Every frame of a file that is whole, before, between and behind damage, and the holes between them."""

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import InvalidTraceError
from ..format.constants import ALIGNMENT, SKIPPABLE
from ..format.frame import Head
from ..format.frames import FRAMES
from ..verdict import Verdict
from .damage import READ_AGAIN, sync_words
from .scan import Prologue
from .source import Frame, FrameSource


@dataclass(frozen=True, slots=True)
class Hole:
    """Bytes without a whole frame.

    `heads`: what is left of its frames, each with the bytes that it takes; `rest`: how many bytes there are of which
    nothing tells; `hides`: whether there were frames without a head.
    """

    start: int
    end: int
    heads: tuple[tuple[Head, int], ...]
    rest: int
    hides: bool


class WholeFrames:
    """The whole frames of a file behind its SCHEMA, each believed by its head, front, padding and chain digest.

    Of a `tail` that a resumed run cut off, behind the chain digest that stands there for the frames that it kept.

    Raises:
        InvalidTraceError: header or SCHEMA are not whole, the file cannot be read, or it is of a newer writer.
    """

    def __init__(self, frames: FrameSource, *, tail: bool = False) -> None:
        self.frames = frames
        self.prologue = Prologue(frames)
        self._tail = tail
        self._allowance = READ_AGAIN * frames.source.size

    def __iter__(self) -> Iterator[Frame | Hole]:
        """Frames in the order of the file, and a hole in front of each that does not follow the one before it."""
        schema = self.prologue.frame
        if self._tail:
            return self.behind(schema.end + self.frames.algorithm.size)
        return self._from(schema.end, schema.parts)

    def behind(self, offset: int) -> Iterator[Frame | Hole]:
        """Likewise, from an offset on at which a frame begins, or began."""
        head = self._head(offset)
        return self._from(offset, head.seq if head else 0)

    def _from(self, offset: int, seq: int) -> Iterator[Frame | Hole]:
        while offset < self.frames.source.size:
            frame = self._whole(offset)
            if frame is None:
                frame = self._next_whole(offset)
                yield self._hole(offset, seq, frame)
            if frame is None:
                return
            yield frame
            offset, seq = frame.end, frame.seq + frame.parts

    def frame(self, offset: int) -> Frame:
        """The frame at an offset. Raises InvalidTraceError."""
        head = self.frames.head(offset)
        if head.type < SKIPPABLE and head.type not in FRAMES:
            raise InvalidTraceError(Verdict.UNSUPPORTED, f"a frame of the unknown type {head.type}", offset)
        return self.frames.frame(offset, self.prologue.largest_front(head.type))

    def _whole(self, offset: int) -> Frame | None:
        try:
            return self.frame(offset)
        except InvalidTraceError as error:
            require_damage(error)
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
            require_damage(error)
            return None

    def _hole(self, start: int, seq: int, behind: Frame | None) -> Hole:
        end = self.frames.source.size if behind is None else behind.offset
        heads, offset = list[tuple[Head, int]](), start
        while offset < end and (head := self._head(offset)) is not None:
            size = min(head.span(self.frames.algorithm.size), end - offset)
            heads.append((head, size))
            offset += size
            seq += 1
        hides = offset < end or (behind is not None and behind.seq != seq)
        return Hole(start, end, tuple(heads), end - offset, hides)


def require_damage(error: InvalidTraceError) -> None:
    """Raise what is no damage of the file: the system, or a newer writer."""
    if error.verdict in (Verdict.IO, Verdict.UNSUPPORTED):
        raise error

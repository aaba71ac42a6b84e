"""STEPs that somebody reads in turn: read ahead, and checked many in one launch."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .....tape.numerics.xxh3.constants import DIGEST
from ...format.constants import HEAD, HEAD_LENGTH
from ...format.digest import Algorithm
from ...format.layout import FrameLayout
from ...format.step import STEP
from ..source import Frame, FrameSource
from .step_check import ChainEnds, StepCheck, is_like_others

MOST = 64
"""How many STEPs are read ahead."""

WINDOW = 1 << 18
"""Bytes of the file that are read at once."""


SHORT = 1 << 14
"""Bytes of a STEP up to which it is read with its body."""


class _Window(NamedTuple):
    """Bytes that were read, where in them STEPs begin, and where in each its last bytes do."""

    data: bytes
    places: list[int]
    closing_at: int


class StepsAhead:
    """The STEPs of a file, each as a reader finds it who asks for it alone.

    Args:
        offset_of: where a STEP stands.
        steps: how many there are.
    """

    def __init__(self, frames: FrameSource, layout: FrameLayout, offset_of: Callable[[int], int], steps: int) -> None:
        self._frames, self._layout, self._offset_of, self._steps = frames, layout, offset_of, steps
        self._ends = ChainEnds.new()
        self._checks: dict[bool, StepCheck | None] = {}
        self._found: dict[int, Frame] = {}

    def get(self, step: int) -> Frame | None:
        """A STEP that was read ahead, or is now; None where it is to be read alone."""
        if step not in self._found:
            self._found = self._read(step)
        return self._found.get(step)

    def learn(self, frame: Frame) -> None:
        """Have STEPs like this one, which was found good, be read ahead."""
        if self._frames.algorithm is Algorithm.XXH3_128:
            ends, salt = self._ends, self._frames.salt_crc
            fits = is_like_others(self._layout, frame)
            made = StepCheck(ends, self._layout, salt, frame, (), in_turn=False) if fits else None
            self._checks[self._layout.due(frame.step)] = made

    def _read(self, step: int) -> dict[int, Frame]:
        check = self._checks.get(self._layout.due(step))
        if check is None:
            return {}
        offsets = self._offsets(step, check)
        if not offsets:
            return {}
        window = self._whole(offsets, check) if check.span <= SHORT else self._ends_alone(offsets, check)
        self._ends.step[0] = step
        good = check.run(np.frombuffer(window.data, np.uint8), np.array(window.places), window.closing_at)
        found = [_frame(check, window, *at) for at in zip(window.places[:good], offsets, strict=False)]
        return {frame.step: frame for frame in found}

    def _whole(self, offsets: Sequence[int], check: StepCheck) -> _Window:
        """STEPs and what lies between them."""
        first = offsets[0] - DIGEST
        data = self._frames.source.read(first, offsets[-1] + check.span - first)
        return _Window(data, [offset - first for offset in offsets], check.closing.start)

    def _ends_alone(self, offsets: Sequence[int], check: StepCheck) -> _Window:
        """STEPs without their bodies, side by side."""
        read, opening, pieces = self._frames.source.read, DIGEST + check.opening, list[bytes]()
        for offset in offsets:
            pieces += read(offset - DIGEST, opening), read(offset + check.closing.start, len(check.closing))
        each = opening + len(check.closing)
        return _Window(b"".join(pieces), list(range(DIGEST, DIGEST + each * len(offsets), each)), check.opening)

    def _offsets(self, step: int, check: StepCheck) -> Sequence[int]:
        """Those of the next STEPs whose state is due like that of the first, as many as a window holds."""
        room, found = min(MOST, self._layout.alike(step)), list[int]()
        for i in range(step, min(step + room, self._steps)):
            offset = self._offset_of(i)
            beyond = offset + check.span > self._frames.source.size
            if beyond or (found and check.span <= SHORT and offset - found[0] > WINDOW):
                break
            found.append(offset)
        return found


def _frame(check: StepCheck, window: _Window, place: int, offset: int) -> Frame:
    """A STEP that was checked."""
    seq, step, payload, front = HEAD.unpack_from(window.data, place)[4:8]
    end = place + window.closing_at + len(check.closing)
    said = window.data[place + HEAD_LENGTH : place + check.opening]
    chain = window.data[end - DIGEST : end]
    return Frame(STEP.code, step, offset, offset + check.span, seq, 1, said, payload - front, chain)

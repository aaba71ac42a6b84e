"""STEPs that follow one of their kind, passed over many at a time, each checked from its first byte to its last."""

import numpy as np

from .....base.arrays import Array
from .....tape.numerics.xxh3.constants import DIGEST
from ...format.constants import HEAD, HEAD_LENGTH, STEPS_PER_INDEX
from ...format.digest import Algorithm
from ...format.step import STEP
from ..scan import Passed, Walk
from ..source import Frame
from .step_check import ChainEnds, StepCheck, is_like_others

MOST = 64
"""How many STEPs are checked in one launch."""

WINDOW = 1 << 20
"""Bytes of several STEPs that are read at once."""

LONG, LONGEST = 1 << 18, 1 << 22
"""Bytes of a STEP whose body is read to where it is checked, and of the longest payload that is checked so."""

KINDS = 16
"""How many kinds are kept prepared; a run that has more is read frame by frame."""

Kind = tuple[int, int, bool]
"""Bytes of the payload and of the front, and whether the state is due."""


class AlikeSteps:
    """Passes over STEPs of a walk. What is not as it must be is left to the walk, which says what is wrong with it."""

    def __init__(self, walk: Walk) -> None:
        self._walk, frames = walk, walk.frames
        self._source, self._salt_crc = frames.source, frames.salt_crc
        self._ends = ChainEnds.new()
        self._window: Array = np.empty(DIGEST + WINDOW, np.uint8)
        self._known: dict[Kind, StepCheck | None] = {}
        self._prepares = frames.algorithm is Algorithm.XXH3_128

    def follow(self, frame: Frame) -> None:
        """Pass over the STEPs that follow a frame of the walk, which was found good with its body."""
        if frame.type == STEP.code and self._prepares:
            self._learn(frame)
        while self._known and self._pass_over():
            pass

    def _learn(self, frame: Frame) -> None:
        """Have STEPs like this one be checked in one call; no longer, if another of its lengths was not like it."""
        layout = self._walk.layout
        kind = len(frame.front) + frame.body_length, len(frame.front), layout.due(frame.step)
        if kind in self._known:
            self._known[kind] = None
        elif len(self._known) < KINDS:
            fits = is_like_others(layout, frame) and kind[0] <= LONGEST
            self._known[kind] = self._made(frame) if fits else None

    def _made(self, frame: Frame) -> StepCheck:
        walk = self._walk
        return StepCheck(self._ends, walk.layout, self._salt_crc, frame, walk.extents, in_turn=True)

    def _pass_over(self) -> bool:
        """Check the next STEPs, as many as can be at once; whether more may follow."""
        walk = self._walk
        check = self._next()
        if check is None:
            return False
        most = 1 if check.span > LONG else min(self._room(check.span), MOST, WINDOW // check.span)
        ends = self._ends
        ends.chain.data[:], ends.link.data[:] = walk.chain, walk.link
        ends.seq[0], ends.step[0] = walk.seq, walk.steps
        if check.span > LONG:
            frames, closing_at = np.frombuffer(self._ends_alone(check), np.uint8), check.opening
        else:
            frames, closing_at = self._window[: DIGEST + most * check.span], None
            self._source.read_into(walk.end - DIGEST, frames.data)
        places = DIGEST + check.span * np.arange(most)
        passed = check.run(frames, places, closing_at)
        if passed:
            said = check.said(frames, int(places[passed - 1]))
            walk.pass_over(passed, check.span, Passed(ends.chain.tobytes(), ends.link.tobytes(), *said))
        return passed == most

    def _ends_alone(self, check: StepCheck) -> bytes:
        """The next STEP without its body, which is read to where it is checked."""
        begin, source = self._walk.end, self._source
        source.read_into(begin + check.opening, check.body.data)
        opening = source.read(begin - DIGEST, DIGEST + check.opening)
        return opening + source.read(begin + check.closing.start, len(check.closing))

    def _next(self) -> StepCheck | None:
        """What checks STEPs like the next frame, if there is one and it is prepared."""
        walk = self._walk
        if walk.seal is not None or walk.end + HEAD_LENGTH > self._source.size or not self._room(HEAD_LENGTH):
            return None
        _, type, _, _, _, _, payload, front, _, _ = HEAD.unpack_from(self._source.read(walk.end, HEAD_LENGTH))
        check = self._known.get((payload, front, walk.layout.due(walk.steps))) if type == STEP.code else None
        return check if check is not None and self._room(check.span) else None

    def _room(self, span: int) -> int:
        """How many STEPs of so many bytes there may be up to the end, to an INDEX, or to those whose state is due."""
        walk = self._walk
        listed = STEPS_PER_INDEX * (len(walk.indexes) + 1) - walk.steps
        return min((self._source.size - walk.end) // span, listed, walk.layout.alike(walk.steps))

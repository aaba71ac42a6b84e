"""A whole frame in memory that stays: what is around its front, made in compiled code."""

from collections.abc import Iterator
from typing import Any

from .....base.arrays import Array
from .....tape.numerics.crc32.checksums import Checksum, Checksums
from .....tape.numerics.prepared.moves import Counter, Move, Moves
from .....tape.numerics.prepared.places import BytePlace, place_of
from .....tape.numerics.prepared.prepared_calls import PreparedPart
from .....tape.numerics.xxh3.constants import DIGEST
from .....tape.numerics.xxh3.digests import Digests
from ...format.constants import (
    FRONT_CRC_AT,
    HEAD,
    HEAD_CRC_AT,
    HEAD_LENGTH,
    LINK_AT,
    SEQ_AT,
    STEP_AT,
    SYNC,
    U32,
    pad8,
)
from ...format.frame import FrameEncoder
from ...format.frame_type import FrameType
from .prepared_front import whole, zeros

BEFORE_FRONT = DIGEST + HEAD_LENGTH
"""Bytes in front of a front: of the chain before the frame, and of the head."""

Piece = tuple[BytePlace, int]
"""Bytes that are appended to a buffer: where they lie, and how many they are."""


class Framed:
    """A front with its head, checksums, padding and chain digest, of which each run makes the next frame of a file.

    Args:
        type: of the frame.
        memory: `BEFORE_FRONT` bytes, and behind them the front.
        body: how many bytes follow it.
        step: 8 bytes with the step that the head is to name.
        frames: of the file, which are counted and chained on.
    """

    def __init__(self, type: FrameType[Any], memory: Array, body: int, step: Array, frames: FrameEncoder) -> None:
        self._memory, self._step, self._frames = memory, step, frames
        self.opening: Array = memory[DIGEST:]
        """Head and front."""
        front = len(memory) - BEFORE_FRONT
        self.payload = front + body
        HEAD.pack_into(self.opening.data, 0, SYNC, type.code, 0, 0, 0, 0, self.payload, front, b"", 0)
        self.closing: Array = zeros(pad8(self.payload) - self.payload + DIGEST)
        """What follows the body."""
        self.nbytes = HEAD_LENGTH + self.payload + len(self.closing)
        """Of the whole frame."""

    def parts(self) -> Iterator[PreparedPart]:
        """What makes the frame, its front being made."""
        yield self._numbered()
        yield Checksums(self._checksums())
        yield Digests([whole(self._memory, self._frames.chain, self.closing[-DIGEST:])])

    def pieces(self, body: list[Piece]) -> list[Piece]:
        """What the frame consists of, with the pieces of its body."""
        return [(place_of(self.opening), self.opening.nbytes), *body, (place_of(self.closing), self.closing.nbytes)]

    def _numbered(self) -> Moves:
        """Where the file ends, into the head."""
        head, frames = self.opening, self._frames
        moves = [
            Move(self._memory[:DIGEST], place_of(frames.chain)),
            Move(head[SEQ_AT:STEP_AT], place_of(frames.seq)),
            Move(head[STEP_AT:][: self._step.nbytes], place_of(self._step)),
            Move(head[LINK_AT:FRONT_CRC_AT], place_of(frames.chain)),
        ]
        return Moves(moves, [Counter(frames.seq)])

    def _checksums(self) -> list[Checksum]:
        """The two of the head."""
        head = self.opening[:HEAD_LENGTH]
        return [
            Checksum(self.opening[HEAD_LENGTH:], head[FRONT_CRC_AT:][: U32.size]),
            Checksum(head[:HEAD_CRC_AT], head[HEAD_CRC_AT:], self._frames.salt_crc),
        ]

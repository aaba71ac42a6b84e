"""A whole frame in memory that stays: what is around its front, made in compiled code."""

from collections.abc import Iterator
from typing import Any

from typing_extensions import Buffer

from .....base.arrays import Array
from .....tape.numerics.crc32.checksums import Checksums
from .....tape.numerics.prepared.moves import Counter, Move, Moves
from .....tape.numerics.prepared.places import BytePlace, place_of
from .....tape.numerics.prepared.prepared_calls import PreparedPart
from .....tape.numerics.xxh3.constants import DIGEST
from .....tape.numerics.xxh3.digests import Digests
from ...format.constants import HEAD_LENGTH, pad8
from ...format.frame import FrameEncoder
from ...format.frame_type import FrameType
from ...read.prepared.prepared_head import PreparedHead, whole, zeros

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
        self._memory, self._frames = memory, frames
        self.opening: Array = memory[DIGEST:]
        """Head and front."""
        front, before = memory[BEFORE_FRONT:], (frames.seq, step, frames.chain)
        self._head = PreparedHead(type, self.opening[:HEAD_LENGTH], front, body, *before, frames.salt_crc)
        self.payload = self._head.payload
        self.closing: Array = zeros(pad8(self.payload) - self.payload + DIGEST)
        """What follows the body."""
        self.nbytes = HEAD_LENGTH + self.payload + len(self.closing)
        """Of the whole frame."""

    def parts(self) -> Iterator[PreparedPart]:
        """What makes the frame, its front being made."""
        chain = Move(self._memory[:DIGEST], place_of(self._frames.chain))
        yield Moves([chain, *self._head.moves], [Counter(self._frames.seq)])
        yield Checksums(self._head.checksums)
        yield Digests([whole(self._memory, self._frames.chain, self.closing[-DIGEST:])])

    def pieces(self, body: list[Piece]) -> list[Piece]:
        """What the frame consists of, with the pieces of its body."""
        return [(place_of(self.opening), self.opening.nbytes), *body, (place_of(self.closing), self.closing.nbytes)]

    def buffers(self, body: list[Buffer]) -> list[Buffer]:
        """The same where they lie."""
        return [self.opening.data, *body, self.closing.data]

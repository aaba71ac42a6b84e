"""The head of a frame as part of a program: its numbers, the link to the frame before it, and both checksums."""

from typing import Any

import numpy as np

from .....base.arrays import Array
from .....tape.numerics.crc32.checksums import Checksum
from .....tape.numerics.prepared.moves import Move
from .....tape.numerics.prepared.places import place_of
from .....tape.numerics.xxh3.digests import Message
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
)
from ...format.frame_type import FrameType


class PreparedHead:
    """Makes the heads of frames of one part and of the same lengths: first the moves, then the checksums.

    Args:
        type: of the frames.
        head: 48 bytes that it goes to.
        front: which it has a checksum of.
        body: how many bytes follow that.
        seq, step, before: arrays with the number of the frame, its step, and the chain digest before it.
        salt_crc: of the file.
    """

    def __init__(
        self,
        type: FrameType[Any],
        head: Array,
        front: Array,
        body: int,
        seq: Array,
        step: Array,
        before: Array,
        salt_crc: int,
    ) -> None:
        self.payload = len(front) + body
        HEAD.pack_into(head.data, 0, SYNC, type.code, 0, 0, 0, 0, self.payload, len(front), b"", 0)
        self.moves = [
            Move(head[SEQ_AT:STEP_AT], place_of(seq)),
            Move(head[STEP_AT:][: step.nbytes], place_of(step)),
            Move(head[LINK_AT:FRONT_CRC_AT], place_of(before)),
        ]
        self.checksums = [
            Checksum(front, head[FRONT_CRC_AT:][: U32.size]),
            Checksum(head[:HEAD_CRC_AT], head[HEAD_CRC_AT:HEAD_LENGTH], salt_crc),
        ]


def zeros(nbytes: int) -> Array:
    """Bytes that are filled later."""
    return np.zeros(nbytes, np.uint8)


def own_bytes(data: bytes) -> Array:
    """Bytes as an array of its own."""
    return np.frombuffer(bytearray(data), np.uint8)


def whole(data: Array, out: Array, again: Array | None = None) -> Message:
    """The digest of some bytes without a head."""
    return Message(data[:0], data.nbytes, out, place_of(data), again)

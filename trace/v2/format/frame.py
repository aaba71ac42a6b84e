"""One frame: its head, and the file chain that joins it to the frame before."""

from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

import numpy as np
from typing_extensions import Buffer

from ....base.arrays import Array
from ..errors import DamageError, InvalidTraceError
from ..verdict import Verdict
from .constants import HEAD, HEAD_LENGTH, MORE, SYNC, U32, pad8


class Head(NamedTuple):
    """The head of a frame without its CRC, in file order."""

    sync: bytes
    type: int
    flags: int
    part: int
    seq: int
    step: int
    payload_length: int
    front_length: int
    link: bytes
    front_crc: int

    @property
    def more(self) -> bool:
        """Whether further parts follow."""
        return bool(self.flags & MORE)

    def span(self, digest_size: int) -> int:
        """Bytes of the whole frame."""
        return HEAD_LENGTH + pad8(self.payload_length) + digest_size


def decode_head(data: bytes, salt_crc: int, offset: int) -> Head:
    """Read the 48 bytes of a head; `salt_crc` is the CRC of the file's salt.

    Raises:
        DamageError: the sync word or the CRC is wrong.
        InvalidTraceError: `corrupt`: unknown flags, or a front longer than the payload.
    """
    head = Head._make(HEAD.unpack_from(data))
    if head.sync != SYNC:
        raise DamageError(f"expected the sync word of a frame, got {head.sync!r}", offset)
    if crc32(data[: HEAD.size], salt_crc) != U32.unpack_from(data, HEAD.size)[0]:
        raise DamageError("the CRC of a frame's head is wrong", offset)
    if head.flags & ~MORE or head.front_length > head.payload_length:
        raise InvalidTraceError(Verdict.CORRUPT, "a frame's head has unknown flags or too long a front", offset)
    return head


class FrameEncoder:
    """Numbers and chains the frames of one file, in arrays that compiled code may go on with.

    `chain` is the digest that ends the last frame made so far, `seq` the number of the next frame.
    """

    __slots__ = ("_hash", "chain", "salt_crc", "seq")

    def __init__(self, salt: bytes, chain: bytes, hash: Callable[[Buffer], bytes], seq: int = 0) -> None:
        self.salt_crc = crc32(salt)
        self._hash = hash
        self.chain: Array = np.frombuffer(bytearray(chain), np.uint8)
        self.seq: Array = np.array([seq], np.int64)

    def encode(
        self, type: int, step: int, front: bytes, body_length: int = 0, flags: int = 0, part: int = 0
    ) -> tuple[bytes, bytes]:
        """The bytes before the body (head and front) and behind it (padding and chain digest)."""
        length, chain = len(front) + body_length, self.chain.tobytes()
        fields = (SYNC, type, flags, part, int(self.seq[0]), step, length, len(front), chain[:8], crc32(front))
        head = HEAD.pack(*fields)
        head += U32.pack(crc32(head, self.salt_crc))
        opening = head + front
        closing = self._hash(chain + opening)
        self.seq += 1
        self.chain[:] = np.frombuffer(closing, np.uint8)
        return opening, bytes(-length % 8) + closing

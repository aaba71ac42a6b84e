"""A trace of version 2 taken apart, and put together again with every length, CRC, chain and link made right.

Written from docs/trace_format.md; shares no code with the package. What is put together is hostile only where it was
changed, so that readers get as far as the change.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import xxhash

HEADER, HEAD = 256, 48
SCHEMA, KEYFRAME, STEP, COMMIT, INDEX, SEAL, EVENT = range(1, 8)


@dataclass
class Frame:
    """One frame: what is written in its head, its front and its body; and where it stood."""

    kind: int
    flags: int
    part: int
    step: int
    front: bytearray
    body: bytes
    offset: int = 0


@dataclass
class File:
    """A header without its CRC, and frames."""

    header: bytearray
    frames: list[Frame] = field(default_factory=list[Frame])

    @classmethod
    def parse(cls, data: bytes) -> "File":
        """Take a whole file apart."""
        made = cls(bytearray(data[: HEADER - 4]))
        size, at = made.digest_size, HEADER
        while at < len(data):
            _, kind, flags, part, _, step, length, front = struct.unpack_from("<4sBBHQQII", data, at)
            payload = data[at + HEAD : at + HEAD + length]
            made.frames.append(Frame(kind, flags, part, step, bytearray(payload[:front]), payload[front:], at))
            at += HEAD + length + -length % 8 + size
        return made

    @property
    def digest_size(self) -> int:
        """Bytes of a digest by the header's code."""
        return 32 if self.header[48] == 2 else 16

    @property
    def hash(self) -> Callable[[bytes], bytes]:
        """The digest of the header's code."""
        return (lambda m: hashlib.sha256(m).digest()) if self.header[48] == 2 else xxhash.xxh3_128_digest

    def of(self, kind: int, number: int = 0) -> Frame:
        """One of the frames of a kind."""
        return [frame for frame in self.frames if frame.kind == kind][number]

    def relink(self) -> None:
        """Make the state chain right again, in the steps and in the SEAL."""
        state = b""
        for frame in self.frames:
            if frame.kind != COMMIT:
                linked, state = self._linked(frame, state, 0)
                frame.front[:] = linked
        self.of(SEAL).front[16 : 16 + self.digest_size] = state

    def encode(
        self,
        *,
        links: bool = True,
        seq: Callable[[int], int] = lambda i: i,
        head_of: Callable[[int, bytes], bytes] = lambda i, head: head,
    ) -> bytes:
        """The bytes, all of the file chain right; with ``links`` the state chain and the COMMITs too.

        ``seq`` and ``head_of`` make another number, and another head, of that of a frame.
        """
        data = bytes(self.header) + struct.pack("<I", zlib.crc32(bytes(self.header)))
        chain, salt = self.hash(b"DGRRfile" + data), zlib.crc32(bytes(self.header[16:32]))
        out, state = bytearray(data), b""
        for i, frame in enumerate(self.frames):
            front = bytes(frame.front)
            if links:
                front, state = self._linked(frame, state, len(out))
            length = len(front) + len(frame.body)
            head = struct.pack(
                "<4sBBHQQII", b"\xdaGRF", frame.kind, frame.flags, frame.part, seq(i), frame.step, length, len(front)
            )
            head += chain[:8] + struct.pack("<I", zlib.crc32(front))
            head = head_of(i, head + struct.pack("<I", zlib.crc32(head, salt)))
            chain = self.hash(chain + head + front)
            out += head + front + frame.body + bytes(-length % 8) + chain
        return bytes(out)

    def _linked(self, frame: Frame, state: bytes, at: int) -> tuple[bytes, bytes]:
        """The front with the state chain's link and with offsets as they are now; the chain's next link."""
        front, size = bytes(frame.front), self.digest_size
        if frame.kind == KEYFRAME and not state:
            schema = bytes(self.frames[0].front) if self.frames[0].kind == SCHEMA else b""
            return front, self.hash(b"DGRRrun2" + self.hash(schema) + front[-size:])
        if frame.kind == STEP and state:
            state = self.hash(state + struct.pack("<Q", frame.step) + front[size + 16 :])
            return state + front[size:], state
        if frame.kind == COMMIT and len(front) == 16:
            return front[:8] + struct.pack("<Q", at), state
        return front, state

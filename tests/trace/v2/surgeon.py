"""A trace taken apart and put together again by the page alone, so that of its content anything can be changed."""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import xxhash

D = 16
SCHEMA, KEYFRAME, STEP, COMMIT, INDEX, SEAL, EVENT = range(1, 8)


def xxh(message: bytes) -> bytes:
    return xxhash.xxh3_128(message).digest()


@dataclass
class Frame:
    kind: int
    step: int
    front: bytearray
    body: bytes
    offset: int = 0


class Surgeon:
    """A trace with XXH3-128, taken apart: `frames`, and `bytes()` to have it whole."""

    def __init__(self, data: bytes) -> None:
        self.header = data[:256]
        self.frames: list[Frame] = []
        at = 256
        while at < len(data):
            length, front = struct.unpack_from("<II", data, at + 24)
            step = struct.unpack_from("<Q", data, at + 16)[0]
            payload = data[at + 48 : at + 48 + length]
            self.frames.append(Frame(data[at + 4], step, bytearray(payload[:front]), payload[front:], at))
            at += 48 + (length + 7) // 8 * 8 + D

    def of(self, kind: int, number: int = 0) -> Frame:
        return [frame for frame in self.frames if frame.kind == kind][number]

    def relink(self) -> None:
        """Make the state chain right again, in the steps and in the SEAL."""
        link = xxh(b"DGRRrun2" + xxh(bytes(self.of(SCHEMA).front)) + bytes(self.of(KEYFRAME).front[-D:]))
        for frame in self.frames:
            if frame.kind == STEP:
                link = xxh(link + struct.pack("<Q", frame.step) + bytes(frame.front[D + 16 :]))
                frame.front[:D] = link
        self.of(SEAL).front[16 : 16 + D] = link

    def bytes(
        self,
        seq: Callable[[int], int] = lambda i: i,
        head_of: Callable[[int, bytes], bytes] = lambda i, head: head,
    ) -> bytes:
        data, chain = self.header, xxh(b"DGRRfile" + self.header)
        for i, f in enumerate(self.frames):
            front = bytes(f.front)
            head = struct.pack("<4sBBHQQ", b"\xdaGRF", f.kind, 0, 0, seq(i), f.step)
            head += struct.pack("<II", len(front) + len(f.body), len(front)) + chain[:8]
            head += struct.pack("<I", zlib.crc32(front))
            head += struct.pack("<I", zlib.crc32(self.header[16:32] + head))
            head = head_of(i, head)
            chain = xxh(chain + head + front)
            payload = front + f.body
            data += head + payload + bytes(-len(payload) % 8) + chain
        return data

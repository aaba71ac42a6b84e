"""Bytes of a file by `pread`, and whole frames out of them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

from ....base import system
from ..errors import DamageError, InvalidTraceError
from ..format.constants import HEAD_LENGTH, HEADER_LENGTH, SKIPPABLE, pad8
from ..format.digest import Algorithm
from ..format.frame import Head, decode_head
from ..format.frames import FRAMES
from ..format.header import Header, decode_header
from ..format.limits import Limits
from ..verdict import Verdict

WINDOW = 1 << 13
"""Bytes that are read at once where few are asked for: heads and fronts that follow one another."""


class Source:
    """A regular file of which at most `size` bytes are read (at first: its size), always with explicit offsets.

    `name`: what errors of the system call it, where nobody else does. No file is mapped into memory: one that is cut
    meanwhile would end the process.
    """

    def __init__(self, descriptor: int, limits: Limits, name: str = "") -> None:
        self._descriptor = descriptor
        self._name = name and f" {name}"
        self.size = os.fstat(descriptor).st_size
        self.limits = limits
        self._window, self._at = b"", 0

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes.

        Raises:
            DamageError: the file ends before.
            InvalidTraceError: `io`: the system cannot read.
        """
        start = offset - self._at
        if start >= 0 and start + length <= len(self._window):
            return self._window[start : start + length]
        if offset + length > self.size:
            raise DamageError("the file ends inside a frame", offset)
        try:
            data = system.pread(self._descriptor, max(length, min(WINDOW, self.size - offset)), offset)
        except OSError as error:
            raise InvalidTraceError(Verdict.IO, f"cannot read{self._name}: {error.strerror}", offset) from error
        if len(data) < length:
            raise DamageError("the file was cut while it was read", offset)
        if length == len(data):
            return data
        self._window, self._at = data, offset
        return data[:length]

    def read_into(self, offset: int, memory: memoryview) -> None:
        """As many bytes as there is room for. Raises as `read`."""
        if offset + len(memory) > self.size:
            raise DamageError("the file ends inside a frame", offset)
        done = 0
        try:
            while done < len(memory) and (more := system.pread_into(self._descriptor, memory[done:], offset + done)):
                done += more
        except OSError as error:
            raise InvalidTraceError(Verdict.IO, f"cannot read{self._name}: {error.strerror}", offset) from error
        if done < len(memory):
            raise DamageError("the file was cut while it was read", offset)

    def blocks(self, offset: int, length: int) -> Iterator[bytes]:
        """The same in blocks of bounded size."""
        for start in range(offset, offset + length, self.limits.block):
            yield self.read(start, min(self.limits.block, offset + length - start))


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole frame, its parts joined. `front` is empty in types that the reader skips."""

    type: int
    step: int
    offset: int
    end: int
    seq: int
    parts: int
    front: bytes
    body_length: int
    chain: bytes


class FrameSource:
    """Frames of one file: each is believed after head CRC, front CRC, padding and chain digest."""

    def __init__(self, source: Source) -> None:
        self.source = source
        data = source.read(0, min(HEADER_LENGTH, source.size))
        self.header: Header = decode_header(data)
        self.algorithm: Algorithm = self.header.algorithm
        self.first_link = self.header.first_link()
        self.salt_crc = crc32(self.header.salt)
        self._memory = memoryview(b"")
        self._part_span = HEAD_LENGTH + self.header.largest_payload + self.algorithm.size

    def head(self, offset: int) -> Head:
        """The head at `offset`, whose frame lies inside the file.

        Raises:
            DamageError: it is no valid head, or its frame goes beyond the end of the file.
            InvalidTraceError: `corrupt`: its payload is larger than the header or the limits allow.
        """
        head = self.lone_head(offset)
        largest = min(self.header.largest_payload, self.source.limits.payload)
        if head.payload_length > largest:
            raise InvalidTraceError(
                Verdict.CORRUPT, f"a payload of {head.payload_length} bytes (at most {largest})", offset
            )
        if offset + head.span(self.algorithm.size) > self.source.size:
            raise DamageError("the file ends inside a frame", offset)
        return head

    def lone_head(self, offset: int) -> Head:
        """The head at `offset`, wherever its frame may end. Raises DamageError: it is no valid head."""
        return decode_head(self.source.read(offset, HEAD_LENGTH), self.salt_crc, offset)

    def chain_before(self, offset: int) -> bytes:
        """The chain digest that stands before the frame at `offset`."""
        if offset == HEADER_LENGTH:
            return self.first_link
        return self.source.read(offset - self.algorithm.size, self.algorithm.size)

    def frame(self, offset: int, largest_front: int, before: bytes | None = None) -> Frame:
        """The frame at `offset` with all its parts; `before`: the chain before it (default: as stored).

        Raises:
            DamageError: it is not whole.
            InvalidTraceError: `corrupt` or `chain`: its parts or its link do not belong there, or its
                front is longer than `largest_front`.
        """
        head = self.head(offset)
        if head.front_length > largest_front and _is_read(head.type):
            raise InvalidTraceError(
                Verdict.CORRUPT, f"a front of {head.front_length} bytes (at most {largest_front})", offset
            )
        chain = self.chain_before(offset) if before is None else before
        front, chain = self._part(offset, head, chain, 0)
        end = offset + head.span(self.algorithm.size)
        parts, length, last = 1, head.payload_length, head
        while last.more:
            last = self._next_part(end, head, last, parts)
            _, chain = self._part(end, last, chain, parts)
            end += last.span(self.algorithm.size)
            length += last.payload_length
            parts += 1
        body = length - head.front_length
        return Frame(head.type, head.step, offset, end, head.seq, parts, front, body, chain)

    def _next_part(self, offset: int, first: Head, last: Head, part: int) -> Head:
        head = self.head(offset)
        if (head.type, head.step, head.seq) != (first.type, first.step, first.seq + part):
            raise InvalidTraceError(Verdict.CHAIN, f"part {part} of a frame is followed by another frame", offset)
        if last.payload_length != self.header.largest_payload or head.front_length or not head.payload_length:
            raise InvalidTraceError(Verdict.CORRUPT, "a part of a frame has an impossible length", offset)
        return head

    def _part(self, offset: int, head: Head, before: bytes, part: int) -> tuple[bytes, bytes]:
        """Front and chain digest of one part, everything but the body checked."""
        if head.part != part or head.link != before[:8]:
            raise InvalidTraceError(Verdict.CHAIN, f"frame {head.seq} does not follow the frame before it", offset)
        keep = _is_read(head.type)
        hasher = self.algorithm.begin(before + self.source.read(offset, HEAD_LENGTH))
        crc = 0
        kept: list[bytes] = []
        for block in self.source.blocks(offset + HEAD_LENGTH, head.front_length):
            crc = crc32(block, crc)
            hasher.update(block)
            if keep:
                kept.append(block)
        if crc != head.front_crc:
            raise DamageError("the CRC of a front is wrong", offset)
        end = offset + HEAD_LENGTH + head.payload_length
        padding = pad8(head.payload_length) - head.payload_length
        trailer = self.source.read(end, padding + self.algorithm.size)
        if any(trailer[:padding]) or trailer[padding:] != hasher.digest():
            raise DamageError("the padding or the chain digest of a frame is wrong", offset)
        return b"".join(kept), trailer[padding:]

    def body_into(self, frame: Frame, memory: memoryview, offset: int = 0) -> None:
        """The bytes of the body from `offset` on, as many as there is room for."""
        largest, at, done = self.header.largest_payload, len(frame.front) + offset, 0
        while done < len(memory):
            part, inside = divmod(at + done, largest)
            count = min(largest - inside, len(memory) - done)
            start = frame.offset + part * self._part_span + HEAD_LENGTH + inside
            self.source.read_into(start, memory[done : done + count])
            done += count

    def body_views(self, frame: Frame, offset: int, length: int) -> Iterator[memoryview]:
        """`length` bytes of the body from `offset` on, in blocks of bounded size, each valid until the next one."""
        block = self.source.limits.block
        for start in range(0, length, block):
            count = min(block, length - start)
            if len(self._memory) < count:
                self._memory = memoryview(bytearray(count))
            self.body_into(frame, self._memory[:count], offset + start)
            yield self._memory[:count]

    def body_blocks(self, frame: Frame, offset: int, length: int) -> Iterator[bytes]:
        """`length` bytes of the body from `offset` on, in blocks of bounded size."""
        at = len(frame.front) + offset
        end = at + length
        while at < end:
            part, inside = divmod(at, self.header.largest_payload)
            count = min(self.header.largest_payload - inside, end - at)
            yield from self.source.blocks(frame.offset + part * self._part_span + HEAD_LENGTH + inside, count)
            at += count


def _is_read(type: int) -> bool:
    """Whether the front of a frame of this type is read, not only checked."""
    return type < SKIPPABLE or type in FRAMES

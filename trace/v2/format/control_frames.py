"""The frames between the steps: COMMIT, INDEX, SEAL and EVENT. All of them are front and no body."""

import re
import struct
from dataclasses import dataclass

from ..errors import InvalidTraceError
from ..verdict import Verdict
from .constants import ENVIRONMENT_EVENT, EVENT_BYTES, INDEX, SEAL, SEAL_MAGIC, SEAL_TAIL, U32_PAIR
from .header import Header

_KIND = re.compile(r"[a-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class IndexRecord:
    """Where up to 1024 steps stand, from step `first` on, and the keyframes among them as (step, offset)."""

    first: int
    previous: int
    steps: tuple[int, ...]
    keyframes: tuple[tuple[int, int], ...]

    def encode(self) -> bytes:
        """The front."""
        flat = (*self.steps, *(n for pair in self.keyframes for n in pair))
        fixed = INDEX.pack(self.first, len(self.steps), len(self.keyframes), self.previous)
        return fixed + struct.pack(f"<{len(flat)}Q", *flat)


def decode_index(front: bytes, offset: int) -> IndexRecord:
    """Read a front whose CRC is right.

    Raises:
        InvalidTraceError: `corrupt`: its length does not follow from its counts.
    """
    if len(front) < INDEX.size:
        raise InvalidTraceError(Verdict.CORRUPT, "an INDEX is too short", offset)
    first, steps, keyframes, previous = INDEX.unpack_from(front)
    if len(front) != INDEX.size + 8 * steps + 16 * keyframes:
        raise InvalidTraceError(Verdict.CORRUPT, "the length of an INDEX does not follow from its counts", offset)
    flat = struct.unpack_from(f"<{steps + 2 * keyframes}Q", front, INDEX.size)
    pairs = flat[steps:]
    return IndexRecord(first, previous, flat[:steps], tuple(zip(pairs[::2], pairs[1::2], strict=True)))


@dataclass(frozen=True, slots=True)
class SealRecord:
    """The end of a run: number of steps, last link of the state chain, offsets of all INDEX frames.

    `final` is the digest of each tensor after the last step and then their root, or empty if not known.
    """

    steps: int
    link: bytes
    final: tuple[bytes, ...]
    indexes: tuple[int, ...]

    def encode(self, offset: int) -> bytes:
        """The front of a SEAL that stands at `offset`."""
        fixed = SEAL.pack(self.steps, bool(self.final), len(self.indexes))
        offsets = struct.pack(f"<{len(self.indexes)}Q", *self.indexes)
        return fixed + self.link + b"".join(self.final) + offsets + SEAL_TAIL.pack(offset, SEAL_MAGIC)


def decode_seal(front: bytes, offset: int, digest_size: int, tensors: int) -> SealRecord:
    """Read a front whose CRC is right; `tensors` is the number of tensors of the schema.

    Raises:
        InvalidTraceError: `corrupt`: its length does not follow from its counts, or its tail is wrong.
    """
    if len(front) < SEAL.size:
        raise InvalidTraceError(Verdict.CORRUPT, "a SEAL is too short", offset)
    steps, known, count = SEAL.unpack_from(front)
    final_at = SEAL.size + digest_size
    offsets_at = final_at + (digest_size * (tensors + 1) if known else 0)
    tail_at = offsets_at + 8 * count
    if known > 1 or len(front) != tail_at + SEAL_TAIL.size or front[tail_at:] != SEAL_TAIL.pack(offset, SEAL_MAGIC):
        raise InvalidTraceError(Verdict.CORRUPT, "a SEAL has not the derived length or not its tail", offset)
    final = tuple(front[i : i + digest_size] for i in range(final_at, offsets_at, digest_size))
    offsets = struct.unpack_from(f"<{count}Q", front, offsets_at)
    return SealRecord(steps, front[SEAL.size : final_at], final, offsets)


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A note in the file: what kind, and its text."""

    kind: str
    text: str

    def encode(self) -> bytes:
        """The front.

        Raises:
            ValueError: the kind has other characters than `a-z0-9_-`, or the whole is too long.
        """
        kind, text = self.kind.encode(), self.text.encode()
        if not _KIND.fullmatch(self.kind):
            raise ValueError(f"event kind: expected 1 to 64 of the characters a-z0-9_-, got {self.kind!r}")
        front = U32_PAIR.pack(len(kind), len(text)) + kind + text
        if len(front) > EVENT_BYTES:
            raise ValueError(f"event: at most {EVENT_BYTES} bytes, got {len(front)}; write a shorter text")
        return front


def decode_event(header: Header, front: bytes, offset: int) -> EventRecord:
    """Read a front whose CRC is right.

    Raises:
        InvalidTraceError: `corrupt`: its lengths, its kind or its UTF-8 are wrong, or it tells of another environment
            than that whose digest the header has.
    """
    try:
        kind, text = U32_PAIR.unpack_from(front)
        start = U32_PAIR.size
        record = EventRecord(front[start : start + kind].decode(), front[start + kind :].decode())
        if len(front) != start + kind + text or record.encode() != front:
            raise ValueError("its lengths are wrong")
    except (struct.error, ValueError) as error:
        raise InvalidTraceError(Verdict.CORRUPT, f"an EVENT cannot be read: {error}", offset) from error
    told = header.environment
    if record.kind == ENVIRONMENT_EVENT and any(told):
        found = header.algorithm.hash(record.text.encode()).ljust(len(told), b"\0")
        if found != told:
            text = "the text of the environment is not what the digest in the header says"
            raise InvalidTraceError(Verdict.CORRUPT, text, offset)
    return record

"""The 256 bytes at the beginning of a trace."""

from dataclasses import dataclass
from zlib import crc32

from ...file_version import MAGIC
from ..errors import InvalidTraceError
from ..verdict import Verdict
from .constants import (
    ALIGNMENT,
    FLOAT_ENVIRONMENT,
    HEADER,
    HEADER_LENGTH,
    KNOWS_ADDITIVE_VALUES,
    LARGEST_PAYLOAD,
    READER,
    SMALLEST_PAYLOAD,
    TAG_FILE,
    U32,
    VERSION,
    RecordMode,
)
from .digest import Algorithm

_ZEROS = bytes(76)
UNKNOWN_DIGEST = bytes(32)


@dataclass(frozen=True, slots=True)
class Header:
    """What is known when a trace begins. Digests are 32 bytes, those of XXH3-128 zero-filled at the end."""

    salt: bytes
    created_at: int
    seed: int
    algorithm: Algorithm
    mode: RecordMode
    state_every: int
    numerics: int
    largest_payload: int
    environment: bytes = UNKNOWN_DIGEST
    dataset: bytes = UNKNOWN_DIGEST
    parent_root: bytes = UNKNOWN_DIGEST
    parent_steps: int = 0
    float_environment: int = FLOAT_ENVIRONMENT
    reader: int = VERSION
    additive: bool = False
    """Whether the digests of what is computed on the way are of the additive digests of the elements."""

    def encode(self) -> bytes:
        """The header's bytes, CRC included."""
        packed = HEADER.pack(
            *(MAGIC, VERSION, 0, HEADER_LENGTH, self.reader, ALIGNMENT),
            *(self.salt, self.created_at, self.seed, self.algorithm, self.mode, self.float_environment),
            *(self.additive, self.state_every, self.numerics, 0, self.largest_payload),
            *(self.environment, self.dataset, self.parent_root, self.parent_steps, _ZEROS),
        )
        return packed + U32.pack(crc32(packed))

    def first_link(self) -> bytes:
        """C[-1], the beginning of the file chain."""
        return self.algorithm.hash(TAG_FILE + self.encode())


def decode_header(data: bytes) -> Header:
    """Read the first 256 bytes of a file.

    Raises:
        InvalidTraceError: `corrupt`, `torn-tail` if the file ends inside them, or `unsupported` for a version or
            digest that this reader does not know.
    """
    if data[:4] != MAGIC[: len(data)]:
        raise InvalidTraceError(Verdict.CORRUPT, f"it begins with {data[:4]!r}, expected {MAGIC!r}", 0)
    if len(data) < HEADER_LENGTH:
        raise InvalidTraceError(Verdict.TORN_TAIL, f"the file ends after {len(data)} bytes, inside its header", 0)
    version = int.from_bytes(data[4:6], "little")
    if version != VERSION:
        raise InvalidTraceError(Verdict.UNSUPPORTED, f"format version {version}, expected {VERSION}", 4)
    if crc32(data[:-4]) != U32.unpack(data[-4:])[0]:
        raise InvalidTraceError(Verdict.CORRUPT, "the CRC of the header is wrong", 0)
    (_, _, zero1, length, reader, alignment, salt, created_at, seed, digest, mode, floats, additive, *rest) = (
        HEADER.unpack(data[:-4])
    )
    state_every, numerics, zero2, largest, environment, dataset, parent_root, parent_steps, zero3 = rest
    if reader > READER or digest not in iter(Algorithm) or mode not in iter(RecordMode):
        text = f"it needs a reader of version {reader} with digest {digest} and record mode {mode}"
        raise InvalidTraceError(Verdict.UNSUPPORTED, text, 12)
    if (length, alignment, zero1, zero2, zero3) != (HEADER_LENGTH, ALIGNMENT, 0, 0, _ZEROS):
        raise InvalidTraceError(Verdict.CORRUPT, "a fixed field of the header has another value", 0)
    if additive > (reader >= KNOWS_ADDITIVE_VALUES):
        text = f"digests of kind {additive} on the way, for a reader of version {reader}"
        raise InvalidTraceError(Verdict.CORRUPT, text, 51)
    if largest % 8 or not SMALLEST_PAYLOAD <= largest <= LARGEST_PAYLOAD or state_every < 1:
        raise InvalidTraceError(Verdict.CORRUPT, f"largest payload {largest} or state_every {state_every}", 52)
    algorithm = Algorithm(digest)
    if any(any(field[algorithm.size :]) for field in (environment, dataset, parent_root)):
        raise InvalidTraceError(Verdict.CORRUPT, "a digest in the header is not zero-filled", 72)
    return Header(
        *(salt, created_at, seed, algorithm, RecordMode(mode), state_every, numerics, largest),
        *(environment, dataset, parent_root, parent_steps, floats, reader, bool(additive)),
    )

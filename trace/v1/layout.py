"""The bytes of a version 1 file: a header of 64 bytes and records of 72, little-endian, without holes.

`docs/trace_format_v1.md` is the description for readers in other languages.
"""

import struct
import zlib
from typing import NamedTuple

import numpy as np

from ..file_version import MAGIC

VERSION = 1
HEADER_STRUCT = struct.Struct("<4sHHQQdIIq16s")
RECORD_STRUCT = struct.Struct("<Q7dII")
HEADER_SIZE = 64
RECORD_SIZE = 72
HEADER_CRC_SPAN = 36  # header_crc32 covers bytes 0..35, file_crc32 among them
RECORD_CRC_SPAN = 64
RECORD_WORDS = RECORD_SIZE // 8
MAX_STEP_COUNT = (2**63 - 1 - HEADER_SIZE) // RECORD_SIZE  # what a signed file offset can reach
FLOAT_FIELDS = ("w_before", "b_before", "grad_w", "grad_b", "w_after", "b_after", "loss")
RECORD_DTYPE = np.dtype(
    [("step_id", "<u8"), *((name, "<f8") for name in FLOAT_FIELDS), ("record_crc32", "<u4"), ("pad0", "<u4")]
)

assert HEADER_STRUCT.size == HEADER_SIZE
assert RECORD_STRUCT.size == RECORD_DTYPE.itemsize == RECORD_SIZE


class HeaderV1(NamedTuple):
    """The header's fields in file order, as stored: nothing is checked here."""

    magic: bytes
    version: int
    pad0: int
    seed: int
    step_count: int
    learning_rate: float
    file_crc32: int
    header_crc32: int
    created_at: int
    reserved: bytes

    @classmethod
    def unpack(cls, raw: bytes) -> "HeaderV1":
        """Read the fields out of 64 bytes."""
        return cls._make(HEADER_STRUCT.unpack(raw))


class Record(NamedTuple):
    """A record's fields in file order, as stored: nothing is checked here."""

    step_id: int
    w_before: float
    b_before: float
    grad_w: float
    grad_b: float
    w_after: float
    b_after: float
    loss: float
    record_crc32: int
    pad0: int

    @classmethod
    def unpack(cls, raw: bytes) -> "Record":
        """Read the fields out of 72 bytes."""
        return cls._make(RECORD_STRUCT.unpack(raw))


def header_crc32(raw: bytes) -> int:
    """Return the CRC-32 of the header bytes that `header_crc32` covers."""
    return zlib.crc32(raw[:HEADER_CRC_SPAN])


def record_crc32(raw: bytes) -> int:
    """Return the CRC-32 of the record bytes that `record_crc32` covers."""
    return zlib.crc32(raw[:RECORD_CRC_SPAN])


def pack_header(seed: int, step_count: int, learning_rate: float, file_crc32: int, created_at: int) -> bytes:
    """Return the 64 bytes of a header, its own CRC filled in."""
    fields = (MAGIC, VERSION, 0, seed, step_count, learning_rate, file_crc32)
    crc = header_crc32(HEADER_STRUCT.pack(*fields, 0, created_at, bytes(16)))
    return HEADER_STRUCT.pack(*fields, crc, created_at, bytes(16))


def record_offset(step: int) -> int:
    """Return the file offset of the record of `step`, in bytes."""
    return HEADER_SIZE + RECORD_SIZE * step

"""Every constant of version 2 and the fixed layouts, as `docs/trace_format.md` states them.

Standard library only, so that each number of the format stands once and can be read without numpy.
"""

import struct
from enum import IntEnum, IntFlag
from typing import Final

VERSION: Final = 2
READER: Final = 6  # what this reader is
KNOWS_SHORT_FLOATS: Final = 3  # a reader that is older knows no floats of 8 and 16 bits, and no complex numbers
KNOWS_PACKED_CALLS: Final = 4
KNOWS_ALL_DTYPES: Final = 5  # a reader that is older knows no powers of two as scales of blocks
KNOWS_ADDITIVE_VALUES: Final = 6
HEADER_LENGTH: Final = 256
ALIGNMENT: Final = 8
SYNC: Final = b"\xdaGRF"
SEAL_MAGIC: Final = b"DGRRSEAL"

TAG_FILE: Final = b"DGRRfile"
TAG_RUN: Final = b"DGRRrun2"
TAG_ROOT: Final = b"DGRRroot"
TAG_DATA: Final = b"DGRRdata"

STEPS_PER_INDEX: Final = 1024
SMALLEST_PAYLOAD: Final = 1 << 12
LARGEST_PAYLOAD: Final = 1 << 30
FRAMEWORK_EVENT: Final = "framework"
SHARDS_EVENT: Final = "shards"  # of which part of its tensors a process has
SUMS_EVENT: Final = "sums"  # the additive digests of these parts after a step
FOREIGN_NUMERICS: Final = 0  # of a run that another library computed
EVENT_BYTES: Final = 1 << 16
METRICS_BYTES: Final = 1 << 16
VALIDATION_BYTES: Final = 1 << 16
CALLS_BYTES: Final = 1 << 22
NOTES_BYTES: Final = 1 << 17  # those of the user, half as many at most, and what is noted beside them
RESUME_BYTES: Final = 1 << 16  # random generator and data cursor of a keyframe together
FLOAT_ENVIRONMENT: Final = 0b111  # nearest even, subnormals kept, no contraction


SKIPPABLE: Final = 128  # and above: types that readers who do not know them skip
MORE: Final = 1  # frame flag: further parts follow


class StepFlag(IntFlag):
    """Flags of a STEP."""

    CLIPPED = 1
    NON_FINITE = 2
    TREE = 4


class RecordMode(IntEnum):
    """How much is written: digests of each step, and whole keyframes; gradients too; the state too; digests alone."""

    DIGEST = 1
    GRADS = 2
    FULL = 3
    BARE = 4

    @property
    def has_gradients(self) -> bool:
        """Whether the gradients of every step are written."""
        return self in (RecordMode.GRADS, RecordMode.FULL)

    @property
    def has_keyframes(self) -> bool:
        """Whether the tensors of keyframes are written."""
        return self is not RecordMode.BARE


class TensorRole(IntEnum):
    """What a tensor is; schemas list params first, then state, then buffers."""

    PARAM = 1
    STATE = 2
    BUFFER = 3


DTYPE_CODES: Final[dict[str, int]] = {
    "f32": 1,
    "f64": 2,
    "i64": 3,
    "i32": 4,
    "i16": 5,
    "i8": 6,
    "u64": 7,
    "u32": 8,
    "u16": 9,
    "u8": 10,
    "bool": 11,
    "f16": 12,
    "bf16": 13,
    "f8e4m3fn": 14,
    "f8e5m2": 15,
    "f8e4m3fnuz": 16,
    "f8e5m2fnuz": 17,
    "c64": 18,
    "c128": 19,
    "f8e8m0fnu": 20,
}
FIRST_OF_READER_3: Final = 12  # the lowest of the codes that readers of version 2 do not know
FIRST_OF_READER_5: Final = 20
COMPUTED: Final = ("f32", "f64")  # the types of params that this library trains
FLOATS: Final = frozenset(name for name in DTYPE_CODES if name[0] in "fc" or name == "bf16")  # complex ones too


def _item_bytes(name: str) -> int:
    """Bytes of an element: the bits that its type is named after."""
    bits = name.lstrip("abcdefghijklmnopqrstuvwxyz").partition("e")[0]
    return int(bits) // 8 if bits else 1


ITEM_BYTES: Final[dict[str, int]] = {name: _item_bytes(name) for name in DTYPE_CODES}

#: magic, version, zero, length, reader, alignment, salt, created_at, seed, digest, mode, float environment,
#: zero, state_every, numerics, zero, largest payload, environment, data set, parent root, parent steps, zeros
HEADER: Final = struct.Struct("<4sHHIHH16sqQBBBBIIIQ32s32s32sQ76s")
#: sync, type, flags, part, seq, step, payload length, front length, link, front CRC
HEAD: Final = struct.Struct("<4sBBHQQII8sI")
HEAD_LENGTH: Final = 48
SEQ_AT, STEP_AT, LINK_AT, FRONT_CRC_AT, HEAD_CRC_AT = (
    struct.calcsize(before) for before in ("<4sBBH", "<4sBBHQ", "<4sBBHQQII", "<4sBBHQQII8s", "<4sBBHQQII8sI")
)
BATCH_ID_LENGTH: Final = 16
U32: Final = struct.Struct("<I")

if HEADER.size + U32.size != HEADER_LENGTH or HEAD.size + U32.size != HEAD_LENGTH:
    raise AssertionError("the structs of the header or of a frame's head do not have the documented size")


def pad8(length: int) -> int:
    """`length` rounded up to a multiple of 8.

    >>> pad8(0), pad8(1), pad8(8)
    (0, 8, 8)
    """
    return (length + 7) & ~7


PARTIAL_SUFFIX = ".partial"

#: the kind of the EVENT whose text the digest of the environment in the header is of
ENVIRONMENT_EVENT = "environment"

"""The front of a KEYFRAME: generator, cursor, a digest per tensor and the state root."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InvalidTraceError
from ..verdict import Verdict
from .constants import RESUME_BYTES, U32_PAIR, pad8
from .digest import Algorithm, state_root
from .layout import FrameLayout


@dataclass(frozen=True, slots=True)
class KeyframeRecord:
    """The state before `step`: opaque generator and cursor, digests in schema order, their root."""

    step: int
    generator: bytes
    cursor: bytes
    digests: tuple[bytes, ...]
    root: bytes


def encode_keyframe(generator: bytes, cursor: bytes, digests: Sequence[bytes], root: bytes) -> bytes:
    """The front of a KEYFRAME.

    Raises:
        ValueError: generator and cursor together are too long.
    """
    opaque = generator + cursor
    if len(opaque) > RESUME_BYTES:
        raise ValueError(f"generator and cursor: at most {RESUME_BYTES} bytes together, got {len(opaque)}")
    opaque += bytes(pad8(len(opaque)) - len(opaque))
    return U32_PAIR.pack(len(generator), len(cursor)) + opaque + b"".join(digests) + root


def decode_keyframe(layout: FrameLayout, algorithm: Algorithm, step: int, front: bytes, offset: int) -> KeyframeRecord:
    """Read a front whose CRC is right.

    Raises:
        InvalidTraceError: `corrupt`: a length is not the derived one, or the root is not that of the digests.
    """
    if len(front) < U32_PAIR.size:
        raise InvalidTraceError(Verdict.CORRUPT, f"KEYFRAME {step} has no lengths", offset)
    generator, cursor = U32_PAIR.unpack_from(front)
    opaque = generator + cursor
    if opaque > RESUME_BYTES or len(front) != layout.keyframe_front(opaque):
        raise InvalidTraceError(Verdict.CORRUPT, f"the front of KEYFRAME {step} has not the derived length", offset)
    start = U32_PAIR.size
    digests_at = start + pad8(opaque)
    size = layout.digest_size
    *digests, root = (front[i : i + size] for i in range(digests_at, len(front), size))
    if any(front[start + opaque : digests_at]) or root != state_root(algorithm, digests):
        raise InvalidTraceError(Verdict.CORRUPT, f"the root of KEYFRAME {step} is not that of its digests", offset)
    return KeyframeRecord(
        step,
        front[start : start + generator],
        front[start + generator : start + opaque],
        tuple(digests),
        root,
    )

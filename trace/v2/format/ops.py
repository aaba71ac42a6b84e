"""The front of an OPS frame: a digest of every value of a step, and of every gradient that arrived."""

from dataclasses import dataclass

import numpy as np

from ..errors import InvalidTraceError
from ..verdict import Verdict
from .constants import OPS


@dataclass(frozen=True, slots=True)
class OpsRecord:
    """The digests in the order of the nodes; None for a value without a gradient.

    `nodes_at` is the offset of the NODES frame that lists what the digests are of.
    """

    nodes_at: int
    values: tuple[bytes, ...]
    grads: tuple[bytes | None, ...]

    def encode(self) -> bytes:
        """The front."""
        present = [digest for digest in self.grads if digest is not None]
        bitmap = sum(1 << i for i, digest in enumerate(self.grads) if digest is not None)
        words = bitmap.to_bytes(8 * _words(len(self.values)), "little")
        return OPS.pack(self.nodes_at, len(self.values), 0) + words + b"".join((*self.values, *present))


def decode_ops(front: bytes, digest_size: int, offset: int) -> OpsRecord:
    """Read a front whose CRC is right.

    Raises:
        InvalidTraceError: `corrupt`: its length does not follow from its count and its bitmap.
    """
    if len(front) < OPS.size:
        raise InvalidTraceError(Verdict.CORRUPT, "an OPS frame is too short", offset)
    nodes_at, count, zero = OPS.unpack_from(front)
    start = OPS.size + 8 * _words(count)
    if zero or len(front) < start + digest_size * count:
        raise InvalidTraceError(Verdict.CORRUPT, "an OPS frame is too short for its digests", offset)
    bits = np.unpackbits(np.frombuffer(front[OPS.size : start], np.uint8), bitorder="little")
    present = set(np.flatnonzero(bits).tolist())
    values_end = start + digest_size * count
    if bits[count:].any() or len(front) != values_end + digest_size * len(present):
        raise InvalidTraceError(Verdict.CORRUPT, "the length of an OPS frame does not follow from its bitmap", offset)
    values = _cut(front[start:values_end], digest_size)
    arrived = iter(_cut(front[values_end:], digest_size))
    return OpsRecord(nodes_at, values, tuple([next(arrived) if i in present else None for i in range(count)]))


def _words(count: int) -> int:
    return -(-count // 64)


def _cut(data: bytes, size: int) -> tuple[bytes, ...]:
    return tuple([data[i : i + size] for i in range(0, len(data), size)])

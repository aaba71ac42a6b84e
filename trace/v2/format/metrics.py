"""The front of a METRICS frame: numbers that a loss function gave to be shown, by name."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan

from ..errors import InvalidTraceError
from ..verdict import Verdict
from .constants import METRICS_BYTES, U32, U32_PAIR
from .limits import Limits
from .schema import check_names

_NUMBER = struct.Struct("<d")


@dataclass(frozen=True, slots=True)
class MetricsRecord:
    """The metrics of a step, in the order in which they were given."""

    step: int
    values: dict[str, float]


def encode_metrics(values: Mapping[str, float]) -> bytes:
    """The front; a NaN in its canonical form.

    Raises:
        ValueError: a name that no tensor could have, or more than 64 KiB in all.
    """
    try:
        check_names(list(values), Limits(), "metrics")
    except ValueError as error:
        raise ValueError(f"recorder.step: metrics: {error}") from None
    numbers = [_NUMBER.pack(nan if isnan(value) else value) for value in values.values()]
    names = [U32.pack(len(name)) + name for name in map(str.encode, values)]
    front = b"".join([U32_PAIR.pack(len(values), 0), *numbers, *names])
    if len(front) > METRICS_BYTES:
        raise ValueError(f"recorder.step: metrics: expected at most {METRICS_BYTES} bytes in all, got {len(front)}")
    return front


def decode_metrics(step: int, front: bytes, limits: Limits, offset: int) -> MetricsRecord:
    """Read a front whose CRC is right.

    Raises:
        InvalidTraceError: `corrupt`: its length does not follow from its counts, or a name is impossible or repeated.
    """
    try:
        (count, zero), at = U32_PAIR.unpack_from(front), U32_PAIR.size
        numbers = struct.unpack_from(f"<{count}d", front, at)
        at += 8 * count
        names = list[str]()
        for _ in numbers:
            start, (length,) = at + U32.size, U32.unpack_from(front, at)
            at = start + length
            names.append(front[start:at].decode())
        check_names(names, limits, "metrics")
    except (ValueError, struct.error) as error:
        raise InvalidTraceError(Verdict.CORRUPT, f"a METRICS frame cannot be read: {error}", offset) from error
    values = dict(zip(names, numbers, strict=True))
    if zero or not count or len(values) != count or at != len(front):
        raise InvalidTraceError(
            Verdict.CORRUPT,
            "the length of a METRICS frame does not follow from its counts, or a name stands twice",
            offset,
        )
    return MetricsRecord(step, values)

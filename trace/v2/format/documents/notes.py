"""The front of a NOTES frame: what the user notes of a run, the host and the time, as JSON."""

import json
import math
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, cast

from .....base.errors import DomainError
from ..constants import NOTES_BYTES
from ..limits import Limits, check_marks
from ..schema import canonical_json

NOTES_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class NotesRecord:
    """What is told of a run where its recording begins, and where it goes on."""

    notes: dict[str, Any]
    """Of the user, by name."""
    host: dict[str, str | int]
    """Name, system and processor of the machine, and the versions of what computes, by name."""
    time: str
    """Of the beginning or of the resumption, by the machine's clock, in UTC: `2026-11-26T05:38:47Z`."""


def encode_notes(record: NotesRecord) -> bytes:
    """The front."""
    return canonical_json(asdict(record))


def decode_notes(front: bytes, limits: Limits) -> NotesRecord:
    """Read a front whose CRC is right.

    Raises:
        DomainError: it is no JSON of notes, or beyond the limits.
    """
    try:
        check_marks(front, limits.json_depth, NOTES_BYTES, NOTES_BYTES)
        told = json.loads(front.decode(), parse_float=_finite, parse_constant=_finite)
        record = _record(told)
        datetime.strptime(record.time, NOTES_TIME)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DomainError(f"it cannot be read: {error}") from error
    return record


def _record(told: Any) -> NotesRecord:
    if not isinstance(told, dict) or cast(dict[str, Any], told).keys() != {"host", "notes", "time"}:
        raise DomainError("expected an object with host, notes and time")
    record = NotesRecord(**cast(dict[str, Any], told))
    if not isinstance(record.notes, dict) or not isinstance(record.host, dict) or not isinstance(record.time, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("expected host and notes to be objects, and time to be a text")
    if not all(type(value) in (str, int) for value in record.host.values()):
        raise DomainError("expected texts and whole numbers of the host")
    return record


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise DomainError(f"expected finite numbers, got {text[:40]}")
    return value

"""What users note of a run, such as its configuration: values that a file can hold, whatever program reads it."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from ..errors import DomainError

Notes: TypeAlias = Mapping[str, Any]
"""Texts, numbers, booleans, None, and lists and mappings of these, by name."""

DEPTH = 6
"""How many levels of mappings and lists notes may have."""

BYTES = 1 << 16
"""How many bytes they may take as JSON in UTF-8."""

_EXPECTED = "expected a text, a finite number, a boolean, None, or a list or a mapping of these by names"
_LARGEST = 1 << 63


def plain_notes(where: str, notes: object) -> dict[str, Any]:
    """A copy in plain types, which later changes of the user's objects do not reach.

    Raises DomainError, which names the entry, for what is no mapping, or holds what JSON has no form for.

    >>> plain_notes("Keep: argument 'notes'", {"model": {"widths": (64, 10)}})
    {'model': {'widths': [64, 10]}}
    """
    if not isinstance(notes, Mapping):
        raise DomainError(f"{where}: expected a mapping by names, got {notes!r}")
    found = _plain_mapping(where, "", cast(Mapping[object, object], notes), 1)
    if (size := len(json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode())) > BYTES:
        raise DomainError(f"{where}: expected at most {BYTES} bytes as JSON, got {size}; note less")
    return found


def _plain_mapping(where: str, path: str, notes: Mapping[object, object], depth: int) -> dict[str, Any]:
    found = dict[str, Any]()
    for name, value in notes.items():
        if type(name) is not str or not _is_text(name):
            of = f"of {path!r} " if path else ""
            raise DomainError(f"{where}: names {of}are texts, got {name!r}; write it as a text")
        found[name] = _plain(where, f"{path}.{name}" if path else name, value, depth)
    return found


def _plain(where: str, path: str, value: object, depth: int) -> Any:
    if isinstance(value, Mapping | list | tuple) and depth == DEPTH:
        raise DomainError(f"{where}: {path!r}: expected at most {DEPTH} levels of mappings and lists, got more")
    if isinstance(value, Mapping):
        return _plain_mapping(where, path, cast(Mapping[object, object], value), depth + 1)
    if isinstance(value, list | tuple):
        items = enumerate(cast(Sequence[object], value))
        return [_plain(where, f"{path}[{i}]", item, depth + 1) for i, item in items]
    if not _is_plain(value):
        kind = type(value).__name__
        raise DomainError(f"{where}: {path!r}: {_EXPECTED}, got {value!r} ({kind}); convert it, or leave it out")
    return value


def _is_plain(value: object) -> bool:
    """Whether JSON has a form for it. Of numpy's numbers and enumerations only their users know which."""
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is int:
        return -_LARGEST <= value < 2 * _LARGEST
    return value is None or type(value) is bool or (type(value) is str and _is_text(value))


def _is_text(value: str) -> bool:
    """Whether it can be written in UTF-8."""
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)

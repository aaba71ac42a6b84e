"""Checkpoints: everything a run needs to go on to the bit, in one file that is whole or not there.

The file is a numpy archive, so ``np.load`` reads it: ``params/NAME``, ``state/NAME``, ``model_state/NAME``, and as
``header`` the UTF-8 bytes of a JSON object with the rest. Its last 64 bytes, the comment of the archive, are the
SHA-256 of all that precedes the comment's length.
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from struct import pack
from typing import IO, Any, cast
from zipfile import ZipFile

import numpy as np

from ....base.arrays import Array
from ....base.atomic_file import replacing
from ....base.system import FilePath
from ....tape import DgrrError
from ...step.training_step import StateDict
from ..batch_stream import Cursor
from .archive import Archive, NonsenseError, as_nonsense

VERSION = 3
"""Of the file; version 1 had no callbacks, and a cursor no `first` and `begun` before version 3."""

_CURSOR = {"epoch", "taken", "steps", "stopped"}
"""What every cursor tells; `first` and `begun` are 0 where they are missing, as in version 2."""
_MISSING = object()
_SIGNATURE = 64
_BLOCK = 1 << 20


class CheckpointError(DgrrError, ValueError):
    """A checkpoint that is damaged, or of another run."""


@dataclass(frozen=True)
class Checkpoint:
    """A run between two steps."""

    law: dict[str, Any]
    """What decides the run besides its data: a run that goes on must have the same."""
    steps: int
    """Steps done since the beginning of the run."""
    loss: float | None
    """Of the last step."""
    cursor: Cursor | None
    """How far the fit in progress has come; None between two fits."""
    state_digest: str
    """For people."""
    arrays: StateDict
    """Parameters, optimizer state and the model's state."""
    callbacks: Sequence[tuple[str, Any]] = ()
    """Class and state of the callbacks that have one."""


def write_checkpoint(path: FilePath, checkpoint: Checkpoint) -> None:
    """Save a checkpoint: under another name, on the disk, then renamed; the one before stays until then."""
    with replacing(path) as file:
        with ZipFile(file, "w") as archive:
            for name, array in _members(checkpoint).items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        _sign(file)


def read_checkpoint(path: FilePath) -> Checkpoint:
    """A checkpoint that was saved.

    Raises CheckpointError for a file that is damaged, no checkpoint, or of another version; OSError if it cannot
    be read.
    """
    with Path(path).open("rb") as file:
        _require_whole(path, file)
        try:
            return _read(Archive(file), str(path))
        except NonsenseError as error:
            raise CheckpointError(
                f"load: {str(path)!r} was signed, but is no checkpoint: {error}; load another one"
            ) from error


def _read(archive: Archive, path: str) -> Checkpoint:
    with as_nonsense():
        header = json.loads(archive["header"].tobytes().decode())
    _require("header", header, isinstance(header, dict), "an object")
    version = header.get("version")
    _require("version", version, _is_count(version), "a whole number of at least 0")
    if not 1 <= version <= VERSION:
        raise CheckpointError(f"load: {path!r} was written by another version of dgrr; load it there")
    fields = {name: _field(header, name) for name in _FIELDS if name in header or name != "callbacks"}
    names, cursor = fields.pop("names"), fields.pop("cursor")
    own = cursor is None or cursor["epoch"] - cursor.get("first", 0) <= cursor["steps"] <= fields["steps"]
    _require("cursor", cursor, own, "its own steps")
    arrays = {part: {name: archive[f"{part}/{name}"] for name in own} for part, own in names.items()}
    return Checkpoint(**fields, cursor=None if cursor is None else Cursor(**cursor), arrays=arrays)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_cursor(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict) or not _CURSOR <= value.keys() <= vars(Cursor()).keys():
        return False
    counts = {name: count for name, count in cast(dict[str, Any], value).items() if name != "stopped"}
    return all(map(_is_count, counts.values())) and type(cast(Any, value)["stopped"]) is bool


def _is_names(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_list_of_names, cast(dict[str, Any], value).values()))


def _is_list_of_names(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    names = cast(Sequence[Any], value)
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _is_callbacks(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_callback, cast(Sequence[Any], value)))


def _is_callback(value: Any) -> bool:
    pair = cast(Sequence[Any], value) if isinstance(value, list) else ()
    return len(pair) == 2 and isinstance(pair[0], str)


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "law": (lambda value: isinstance(value, dict), "an object"),
    "steps": (_is_count, "a whole number of at least 0"),
    "loss": (lambda value: value is None or type(value) in (int, float), "a number or null"),
    "cursor": (_is_cursor, "epoch, taken, steps, stopped, or null"),
    "state_digest": (lambda value: isinstance(value, str), "a text"),
    "callbacks": (_is_callbacks, "a list of pairs of a name and a state"),
    "names": (_is_names, "lists of different names"),
}
"""What a header holds besides its version: whether a value can be it, and in words. Version 1 had no callbacks."""


def _field(header: dict[str, Any], name: str) -> Any:
    holds, expected = _FIELDS[name]
    value = header.get(name, _MISSING)
    _require(name, value, value is not _MISSING and holds(value), expected)
    return value


def _require(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        given = "nothing" if value is _MISSING else repr(value)[:80]
        raise NonsenseError(f"{name}: expected {expected}, got {given}")


def _members(checkpoint: Checkpoint) -> dict[str, Array]:
    """The arrays of the archive by name."""
    header = {name: value for name, value in vars(checkpoint).items() if name != "arrays"}
    header["version"] = VERSION
    header["cursor"] = asdict(checkpoint.cursor) if checkpoint.cursor else None
    header["names"] = {part: list(arrays) for part, arrays in checkpoint.arrays.items()}
    members: dict[str, Array] = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    return members | {f"{part}/{n}": a for part, arrays in checkpoint.arrays.items() for n, a in arrays.items()}


def _sign(file: IO[bytes]) -> None:
    """Put the digest of an archive behind it, as its comment; an archive ends with the length of that."""
    size = file.seek(0, os.SEEK_END) - 2
    signature = _digest(file, size)
    file.seek(size)
    file.write(pack("<H", _SIGNATURE) + signature)


def _require_whole(path: FilePath, file: IO[bytes]) -> None:
    size = file.seek(0, os.SEEK_END) - 2 - _SIGNATURE
    expected = pack("<H", _SIGNATURE) + _digest(file, size) if size > 0 else b""
    if not expected or file.read() != expected:
        raise CheckpointError(
            f"load: {str(path)!r} is damaged or no checkpoint: its digest does not match its bytes; load another one"
        )
    file.seek(0)


def _digest(file: IO[bytes], size: int) -> bytes:
    """The digest of the first ``size`` bytes, behind which the file then stands."""
    digest = sha256()
    file.seek(0)
    for start in range(0, size, _BLOCK):
        digest.update(file.read(min(_BLOCK, size - start)))
    return digest.hexdigest().encode()

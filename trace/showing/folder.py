"""Several traces, such as those of a folder, one line each."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType

from ...screen.showing import counted, drawn
from ..file_version import MAGIC, TraceFileError, TruncatedFileError, version_of
from ..json_value import Plain
from ..told import ToldOfRun, as_text, in_table, readable
from ..v2.errors import InvalidTraceError
from ..v2.format.constants import VERSION, TensorRole
from ..v2.read.reader import TraceReader
from ..v2.verdict import Verdict
from .overview import last_root, read
from .state import state_of

_DIGITS = 10
"""Of a state root, in a line."""


@dataclass(frozen=True, slots=True)
class Entry(Plain):
    """One file of a folder: `state` is that of its run, or why it is not read: a verdict, another version."""

    path: str
    state: str
    bytes: int
    version: int | None = None
    parameters: int | None = None
    rules: tuple[str, ...] = ()
    steps: int | None = None
    last_loss: Any = None
    state_root: str | None = None
    best_validation_loss: float | None = None
    best_validation_step: int | None = None
    notes: dict[str, Any] = field(default_factory=dict[str, Any])
    begun: str | None = None


def entries(folder: str, *, recursive: bool = False) -> list[Entry]:
    """The traces of a folder, finished or not, in the order of their names; with ``recursive`` of those below it too.

    Raises OSError if the folder cannot be read.
    """
    return [entry(path) for path in sorted(_files(folder, recursive=recursive)) if _is_trace(path)]


def entry(path: str) -> Entry:
    """What is known of a file that begins as a trace does."""
    bytes = os.stat(path).st_size
    try:
        version = version_of(path)
        if version != VERSION:
            return Entry(path, f"version {version}", bytes, version)
        with read(path) as trace:
            return _of_trace(path, trace)
    except InvalidTraceError as error:
        return Entry(path, error.verdict.value, bytes)
    except TruncatedFileError:
        return Entry(path, Verdict.TORN_TAIL.value, bytes)
    except TraceFileError:
        return Entry(path, Verdict.IO.value, bytes)


def screen(found: Sequence[Entry], folder: str) -> RenderableType:
    """All of them for a rich console, by their paths in a folder: a row for each run, a column for each figure.

    Of what runs tell of themselves only that has columns which some run tells.
    """
    notes = list(dict.fromkeys(name for entry in found for name in entry.notes))
    rows = [_cells(entry, folder, notes) for entry in found]
    columns = [*_COLUMNS[:_TOLD], *map(as_text, notes), *_COLUMNS[_TOLD:]]
    optional = range(_TOLD - 1, _TOLD + len(notes) + 1)
    shown = [i for i in range(len(columns)) if i not in optional or any(row[i] is not None for row in rows)]
    title = f"{folder}: {counted(len(found), 'trace')}"
    return drawn(title, [columns[i] for i in shown], [[row[i] for i in shown] for row in rows])


_COLUMNS = ("trace", "parameters", "rules", "steps", "last loss", "best validation", "begun", "state root", "state")
_TOLD = _COLUMNS.index("begun")
"""Where the notes stand."""


def _cells(entry: Entry, folder: str, notes: Sequence[str]) -> list[object]:
    """The cells of a run, of its notes those that any run has."""
    return [
        os.path.relpath(entry.path, folder),
        entry.parameters,
        ", ".join(entry.rules) or None,
        entry.steps,
        None if entry.last_loss is None else float(entry.last_loss),
        entry.best_validation_loss,
        *[in_table(entry.notes.get(name)) for name in notes],
        None if entry.begun is None else readable(entry.begun),
        None if entry.state_root is None else entry.state_root[:_DIGITS],
        entry.state,
    ]


def _of_trace(path: str, trace: TraceReader) -> Entry:
    params, told = [spec for spec in trace.schema.tensors if spec.role is TensorRole.PARAM], ToldOfRun.of(trace)
    return Entry(
        path=path,
        state=state_of(trace),
        bytes=os.stat(path).st_size,
        version=VERSION,
        parameters=sum(int(np.prod(spec.shape)) for spec in params),
        rules=tuple(group.rule for group in trace.schema.rules),
        steps=len(trace),
        last_loss=trace[-1].loss if len(trace) else None,
        state_root=last_root(trace),
        best_validation_loss=told.best_loss,
        best_validation_step=told.best,
        notes=told.notes,
        begun=told.begun,
    )


def _files(folder: str, *, recursive: bool) -> Iterator[str]:
    if not recursive:
        yield from (entry.path for entry in os.scandir(folder) if entry.is_file())
        return
    os.scandir(folder).close()  # which raises where there is none
    yield from (str(path) for path in Path(folder).rglob("*") if path.is_file())


def _is_trace(path: str) -> bool:
    """Whether a file begins as traces do."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False

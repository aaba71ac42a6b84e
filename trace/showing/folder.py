"""The traces of a folder, one line each."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType

from ...screen.showing import counted, drawn
from ..file_version import MAGIC, TraceFileError, TruncatedFileError, version_of
from ..json_value import Plain
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
    """All of them for a rich console."""
    columns = ("trace", "parameters", "rules", "steps", "last loss", "state root", "state")
    rows = [(os.path.relpath(entry.path, folder), *_cells(entry)) for entry in found]
    return drawn(f"{folder}: {counted(len(found), 'trace')}", columns, rows)


def _cells(entry: Entry) -> tuple[object, ...]:
    loss = None if entry.last_loss is None else float(entry.last_loss)
    root = None if entry.state_root is None else entry.state_root[:_DIGITS]
    return entry.parameters, ", ".join(entry.rules) or None, entry.steps, loss, root, entry.state


def _of_trace(path: str, trace: TraceReader) -> Entry:
    params = [spec for spec in trace.schema.tensors if spec.role is TensorRole.PARAM]
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

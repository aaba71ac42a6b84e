"""Recovering a damaged or unfinished trace: what is whole of it, in new files that validate."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from .... import system
from ...exit_codes import Exit
from ...file_version import open_regular, version_of
from ..check.report import Report
from ..check.validate import validate_v2
from ..errors import InvalidTraceError
from ..format.constants import PARTIAL_SUFFIX, VERSION
from ..format.control_frames import EventRecord
from ..format.keyframe import KeyframeRecord
from ..format.limits import Limits
from ..read.scan import Record
from ..read.source import Frame, FrameSource, Source
from ..verdict import Verdict
from .rewrite import copy_trace
from .salvage import Salvage, Stretch
from .writer import TraceWriter

_ALL = 1 << 64
_Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class RecoveredPart:
    """A new file: it holds steps `first` to `first + steps - 1` of the source, numbered from 0; `report`: validated."""

    path: str
    first: int
    steps: int
    report: Report

    def __str__(self) -> str:
        kept = f"steps {self.first} to {self.first + self.steps - 1}" if self.steps else "the initial state"
        as_numbers = f", as steps 0 to {self.steps - 1}" if self.first else ""
        report = self.report
        return f"{self.path}: {kept}{as_numbers}; structure {report.structure}, chain {report.chain}"

    def to_dict(self) -> dict[str, Any]:
        """Plain types, by the names of the attributes."""
        return {"path": self.path, "first": self.first, "steps": self.steps, "report": self.report.to_dict()}


@dataclass(frozen=True, slots=True)
class Recovery:
    """What `recover` has made of a trace.

    `found` is what `validate` says of the source; `parts` are the new files. `lost_steps` are ranges (first, last) that
    are known to have been there; `lost_frames` type → number of frames that held something and are in no new file
    (`unknown`: bytes of which nothing can be said); `lost_bytes` are those of these frames.
    """

    path: str
    found: Report
    parts: tuple[RecoveredPart, ...]
    lost_steps: tuple[tuple[int, int], ...]
    lost_frames: dict[str, int]
    lost_bytes: int

    @property
    def lossy(self) -> bool:
        """Whether anything that was recorded is missing; COMMIT, INDEX and SEAL are made anew."""
        return bool(self.lost_frames or self.lost_steps)

    @property
    def verdict(self) -> Verdict:
        """`ok`, or `lossy`."""
        return Verdict.LOSSY if self.lossy else Verdict.OK

    @property
    def exit_code(self) -> Exit:
        """The exit code that belongs to the verdict."""
        return self.verdict.exit_code

    def to_dict(self) -> dict[str, Any]:
        """Plain types, by the names of the attributes."""
        return {
            "path": self.path,
            "verdict": self.verdict.value,
            "found": self.found.to_dict(),
            "parts": [part.to_dict() for part in self.parts],
            "lost_steps": [list(pair) for pair in self.lost_steps],
            "lost_frames": dict(self.lost_frames),
            "lost_bytes": self.lost_bytes,
        }

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.verdict.value} (it was {self.found.verdict.value}, and is unchanged)"]
        lines += [f"  {finding}" for finding in self.found.findings]
        lines += [f"  kept  {part}" for part in self.parts]
        if self.lossy:
            frames = ", ".join(f"{count} {name}" for name, count in self.lost_frames.items())
            lines.append(f"  lost  {self.lost_bytes} bytes: {frames or 'frames that left no trace'}")
        lines += [f"  lost  steps {first} to {last}" for first, last in self.lost_steps]
        return "\n".join(lines)


def recover(path: _Path, out: _Path) -> Recovery:
    """Write what is whole of a trace of version 2 to the new file `out`, sealed; the source is only read.

    Steps go on behind a lost COMMIT, INDEX, KEYFRAME or EVENT, for the state chain joins them. Where a STEP is lost,
    the steps from the next KEYFRAME on become a trace of their own, `out.1` and so on, whose steps begin at 0. Each
    names the source's file chain where it ends as its parent, and has an EVENT `recover` with the source's verdict and
    the number of its first step there. A missing PATH is read from `PATH.partial`.

    Raises:
        ValueError: one of the new files exists, finished or not.
        InvalidTraceError: nothing can be recovered: header, SCHEMA or every KEYFRAME is damaged; or it is of version 1.
        TraceFileError: the source cannot be read, or is no trace.
        TraceWriteError: a new file cannot be written; none is left.

    >>> import os, tempfile
    >>> import numpy as np
    >>> from dgrr.runtime import SGD, Trainer
    >>> from dgrr.trace import recover
    >>> folder = tempfile.TemporaryDirectory()
    >>> run, new = os.path.join(folder.name, "run.dgrr"), os.path.join(folder.name, "new.dgrr")
    >>> trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.1), trace=run)
    >>> done = trainer.fit([np.ones(2)] * 3, progress=False)
    >>> os.truncate(run, os.path.getsize(run) - 9)
    >>> found = recover(run, new)
    >>> found.found.verdict.value, found.verdict.value, found.parts[0].steps
    ('torn-tail', 'ok', 3)
    >>> folder.cleanup()
    """
    name = _source(path)
    _require_free(os.fspath(out))
    descriptor = open_regular(name)
    try:
        found = validate_v2(name)
        _require_read(found)
        salvage = _salvage(Source(descriptor, Limits(), name), found)
        chosen = [(_numbered(out, i), stretch) for i, stretch in enumerate(salvage.stretches)]
        for target, _ in chosen:
            _require_free(target)
        parts = _write_all(salvage, found, chosen)
    finally:
        system.release(descriptor)
    return Recovery(name, found, parts, tuple(_gaps(salvage)), dict(salvage.lost), salvage.lost_bytes)


def _source(path: _Path) -> str:
    name = os.fspath(path)
    if not os.path.lexists(name) and os.path.exists(name + PARTIAL_SUFFIX):
        name += PARTIAL_SUFFIX
    version = version_of(name)
    if version == 1:
        text = f"recover: {name} is of version 1, which has no keyframes and no chain to recover by"
        raise InvalidTraceError(Verdict.UNSUPPORTED, text)
    if version != VERSION:
        text = f"recover: {name} is of version {version}, expected {VERSION}"
        raise InvalidTraceError(Verdict.UNSUPPORTED, text)
    return name


def _numbered(out: _Path, number: int) -> str:
    return f"{os.fspath(out)}.{number}" if number else os.fspath(out)


def _require_free(target: str) -> None:
    for name in (target, target + PARTIAL_SUFFIX):
        if os.path.lexists(name):
            raise ValueError(f"recover: {name} exists; a recovery only writes new files, name another")


def _salvage(source: Source, found: Report) -> Salvage:
    try:
        salvage = Salvage(FrameSource(source))
    except InvalidTraceError as error:
        if error.verdict in (Verdict.IO, Verdict.UNSUPPORTED):
            raise
        text = f"nothing can be recovered without header and SCHEMA: {error.text}"
        raise InvalidTraceError(found.verdict, text, error.offset) from error
    if not salvage.stretches:
        raise InvalidTraceError(found.verdict, "nothing can be recovered: no KEYFRAME is whole that steps follow")
    return salvage


def _write_all(salvage: Salvage, found: Report, chosen: list[tuple[str, Stretch]]) -> tuple[RecoveredPart, ...]:
    made: list[RecoveredPart] = []
    try:
        for target, stretch in chosen:
            made.append(_write(salvage, found, stretch, target))
    except BaseException:
        for part in made:
            system.remove(part.path)
        raise
    return tuple(made)


def _write(salvage: Salvage, found: Report, stretch: Stretch, target: str) -> RecoveredPart:
    steps = stretch.end - stretch.first
    header = replace(
        salvage.frames.header,
        salt=os.urandom(16),
        created_at=time.time_ns(),
        parent_root=stretch.chain.ljust(32, b"\0"),
        parent_steps=steps,
    )
    writer = TraceWriter.create(target, header, salvage.layout.schema)
    try:
        copy_trace(salvage.frames, _noted(salvage, found, stretch), writer, _ALL)
        report = validate_v2(target)
        _require_read(report)
        if not report.ok:
            raise InvalidTraceError(Verdict.CORRUPT, f"what was recovered does not validate: {report.findings[0]}")
    except BaseException:
        _give_up(writer)
        raise
    return RecoveredPart(target, stretch.first, steps, report)


def _require_read(report: Report) -> None:
    if report.verdict is Verdict.IO:
        raise InvalidTraceError(Verdict.IO, f"{report.path}: {report.findings[0].text}")


def _give_up(writer: TraceWriter) -> None:
    """Remove a new file, whether it has its name already or not."""
    writer.discard()
    for name in (writer.path, writer.path + PARTIAL_SUFFIX):
        with suppress(FileNotFoundError):
            system.remove(name)


def _noted(salvage: Salvage, found: Report, stretch: Stretch) -> Iterator[tuple[Frame, Record]]:
    """The stretch, with an EVENT behind its first KEYFRAME that says where it is from."""
    text = json.dumps({"first": stretch.first, "verdict": found.verdict.value})
    begun = False
    for frame, record in salvage.records(stretch):
        yield frame, record
        if isinstance(record, KeyframeRecord) and not begun:
            begun = True
            yield frame, EventRecord("recover", text)


def _gaps(salvage: Salvage) -> Iterator[tuple[int, int]]:
    """The steps that are in no stretch, as (first, last)."""
    at = 0
    for stretch in salvage.stretches:
        if stretch.first > at:
            yield at, stretch.first - 1
        at = stretch.end
    if salvage.seen > at:
        yield at, salvage.seen - 1

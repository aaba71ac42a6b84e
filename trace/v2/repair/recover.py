"""Recovering a damaged or unfinished trace: what is whole of it, in new files that validate."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from json import dumps
from typing import Any, ClassVar

from ....base import system
from ....base.errors import DomainError
from ....base.printed import Printed
from ...exit_codes import Exit
from ...file_version import open_regular, version_of
from ...json_value import Plain
from ..check.report import Finding, Report
from ..check.validate import validate_v2
from ..errors import InvalidTraceError
from ..format.constants import PARTIAL_SUFFIX, VERSION
from ..format.frames import EventRecord, KeyframeRecord
from ..format.limits import Limits
from ..read.source import FrameSource, Source
from ..verdict import Verdict
from ..write.torn import is_torn
from ..write.writer import TraceWriter
from .halves import Half, require_alike, require_joined
from .rewrite import Copied, copy_trace
from .salvage import Salvage, Stretch

_ALL = 1 << 64
_Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class RecoveredPart(Plain):
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


@dataclass(frozen=True, slots=True)
class RecoveredSource(Plain):
    """A file that was read; `found`: as `validate` says; `taken`: ranges (first, last) of steps that are from it."""

    path: str
    found: Report
    taken: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        ranges = ", ".join(f"{first} to {last}" if first < last else f"{first}" for first, last in self.taken)
        return f"{self.path}: {self.found.verdict.value}; from it: {f'steps {ranges}' if ranges else 'no steps'}"


@dataclass(frozen=True, slots=True)
class Recovery(Plain, Printed):
    """What `recover` made of a trace, or of several files of one run.

    `path` and `found` are those of the first source; `parts` are the new files. `lost_steps` are ranges (first, last)
    that are known to have been there; `lost_frames` type → number of frames that held something and are in no new file
    (`unknown`: bytes of which nothing can be said); `lost_bytes` are those of these frames. `in_several` steps stood in
    more than one source, with equal links.
    """

    _keys: ClassVar = (
        *("path", "verdict", "found", "sources", "in_several"),
        *("parts", "lost_steps", "lost_frames", "lost_bytes"),
    )

    sources: tuple[RecoveredSource, ...]
    parts: tuple[RecoveredPart, ...]
    lost_steps: tuple[tuple[int, int], ...]
    lost_frames: dict[str, int]
    lost_bytes: int
    in_several: int = 0

    @property
    def path(self) -> str:
        """Of the first source, which is unchanged."""
        return self.sources[0].path

    @property
    def found(self) -> Report:
        """What `validate` says of the first source."""
        return self.sources[0].found

    @property
    def lossy(self) -> bool:
        """Whether anything that was recorded is missing; COMMIT, INDEX and SEAL are written again."""
        return bool(self.lost_frames or self.lost_steps)

    @property
    def verdict(self) -> Verdict:
        """`ok`, or `lossy`."""
        return Verdict.LOSSY if self.lossy else Verdict.OK

    @property
    def exit_code(self) -> Exit:
        """The exit code that belongs to the verdict."""
        return self.verdict.exit_code

    def _unchanged(self) -> str:
        words = [source.found.verdict.value for source in self.sources]
        return (
            f"they were {', '.join(words)}, and are unchanged" if words[1:] else f"it was {words[0]}, and is unchanged"
        )

    def __str__(self) -> str:
        several = len(self.sources) > 1
        lines = [f"{' and '.join(s.path for s in self.sources)}: {self.verdict.value} ({self._unchanged()})"]
        for source in self.sources:
            lines += [f"  {source}"] if several else []
            lines += [f"  {finding}" for finding in source.found.findings]
        lines += [f"  equal {self.in_several} steps that stand in more than one of them"] if several else []
        lines += [f"  kept  {part}" for part in self.parts]
        if self.lossy:
            frames = ", ".join(f"{count} {name}" for name, count in self.lost_frames.items())
            lines.append(f"  lost  {self.lost_bytes} bytes: {frames or 'frames that left no trace'}")
        lines += [f"  lost  steps {first} to {last}" for first, last in self.lost_steps]
        return "\n".join(lines)


def recover(path: _Path | Sequence[_Path], out: _Path) -> Recovery:
    """Write the intact part of a trace of version 2 to the new file `out`, sealed; the source is only read.

    Steps continue after a lost COMMIT, INDEX, KEYFRAME or EVENT, because the state chain joins them. If a STEP is lost,
    the steps from the next KEYFRAME on become a separate trace, ``out.1`` and so on, with steps from 0. Each names the
    source's file chain where it ends as its parent, and has an EVENT `recover` with the source's verdict and the number
    of its first step there. A missing PATH is read from `PATH.partial`.

    Several paths are files of one run: what one has lost, another may have. Steps in several of them are compared by
    their links, and steps of one follow those of another if the state chain says so. Pass also what resumed runs cut
    off, `PATH.torn`, `PATH.torn.1` and so on.

    Raises:
        DomainError: one of the new files exists, finished or not; no path, or one twice.
        InvalidTraceError: nothing can be recovered: header, SCHEMA or every KEYFRAME is damaged; or it is of version 1;
            or, `diverged`, several paths are not of one run.
        TraceFileError: a source cannot be read, or is no trace.
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
    names = _sources(path)
    _require_free(os.fspath(out))
    with ExitStack() as stack:
        found = [_torn(name) if is_torn(name) else validate_v2(name) for name in names]
        for report in found:
            _require_read(report)
        halves = _halves(names, found, stack)
        in_several = require_alike(halves)
        salvage = Salvage(halves)
        require_joined(halves, salvage.handed_over)
        if not salvage.stretches:
            text = "nothing can be recovered: no intact KEYFRAME is followed by steps"
            raise InvalidTraceError(found[0].verdict, text)
        taken = [salvage.taken_from(half) for half in halves]
        sources = tuple(map(RecoveredSource, names, found, taken))
        parts = _write_all(salvage, sources, out)
    return Recovery(sources, parts, tuple(_gaps(salvage)), dict(salvage.lost), salvage.lost_bytes, in_several)


def _sources(path: _Path | Sequence[_Path]) -> list[str]:
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not given:
        raise DomainError("recover: argument 'path': expected at least one path, got none")
    names = [_source(one) for one in given]
    for i, name in enumerate(names):
        if os.path.exists(name) and any(os.path.samefile(name, other) for other in names[:i]):
            raise DomainError(f"recover: argument 'path': expected different files, got {name} twice")
    return names


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
            raise DomainError(f"recover: {name} exists; recover writes only new files; choose another name")


def _torn(name: str) -> Report:
    """What there is to say of a tail that was cut off: what stood before it is in another file."""
    return Report(name, VERSION, findings=[Finding(Verdict.TORN_TAIL, "what a resumed run cut off")])


def _halves(names: Sequence[str], found: Sequence[Report], stack: ExitStack) -> list[Half]:
    """The sources, open."""
    halves = list[Half]()
    for name, report in zip(names, found, strict=True):
        descriptor = open_regular(name)
        stack.callback(system.release, descriptor)
        halves.append(_half(name, report, Source(descriptor, Limits(), name)))
    return halves


def _half(name: str, found: Report, source: Source) -> Half:
    try:
        return Half(name, FrameSource(source), tail=is_torn(name))
    except InvalidTraceError as error:
        if error.verdict in (Verdict.IO, Verdict.UNSUPPORTED):
            raise
        text = f"nothing can be recovered of {name} without header and SCHEMA: {error.text}"
        raise InvalidTraceError(found.verdict, text, error.offset) from error


def _write_all(salvage: Salvage, sources: Sequence[RecoveredSource], out: _Path) -> tuple[RecoveredPart, ...]:
    targets = [_numbered(out, i) for i in range(len(salvage.stretches))]
    for target in targets:
        _require_free(target)
    made: list[RecoveredPart] = []
    try:
        for target, stretch in zip(targets, salvage.stretches, strict=True):
            made.append(_write(salvage, sources, stretch, target))
    except BaseException:
        for part in made:
            system.remove(part.path)
        raise
    return tuple(made)


def _write(salvage: Salvage, sources: Sequence[RecoveredSource], stretch: Stretch, target: str) -> RecoveredPart:
    steps = stretch.end - stretch.first
    header = replace(
        salvage.header,
        salt=os.urandom(16),
        created_at=time.time_ns(),
        parent_root=stretch.chain.ljust(32, b"\0"),
        parent_steps=steps,
    )
    writer = TraceWriter.create(target, header, salvage.layout.schema)
    try:
        copy_trace(_noted(salvage, sources, stretch), writer, _ALL)
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


def _noted(salvage: Salvage, sources: Sequence[RecoveredSource], stretch: Stretch) -> Iterator[Copied]:
    """The stretch, with an EVENT behind its first KEYFRAME that says where it is from."""
    note: dict[str, Any] = {"first": stretch.first, "verdict": sources[0].found.verdict.value}
    if len(sources) > 1:
        note["joined"] = [{"steps": s.taken, "verdict": s.found.verdict.value} for s in sources]
    begun = False
    for frames, frame, record in salvage.records(stretch):
        yield frames, frame, record
        if isinstance(record, KeyframeRecord) and not begun:
            begun = True
            yield frames, frame, EventRecord("recover", dumps(note))


def _gaps(salvage: Salvage) -> Iterator[tuple[int, int]]:
    """The steps that are in no stretch, as (first, last)."""
    at = 0
    for stretch in salvage.stretches:
        if stretch.first > at:
            yield at, stretch.first - 1
        at = stretch.end
    if salvage.seen > at:
        yield at, salvage.seen - 1

"""Checking a trace against itself: structure, both chains, and every digest of a recorded value."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ....base import system
from ....base.system import FilePath
from ...file_version import TraceFileError, open_regular
from ..errors import DamageError, InvalidTraceError
from ..format.constants import VERSION
from ..format.digest import TensorDigest
from ..format.frames import KeyframeRecord
from ..format.layout import BodyExtent, FrameLayout
from ..format.limits import Limits
from ..format.step import STEP
from ..read.damage import judge
from ..read.scan import Walk
from ..read.source import Frame, FrameSource, Source
from ..read.worth import is_worth_preparing
from ..verdict import Verdict
from .report import Finding, Report
from .told import OnlyTold

if TYPE_CHECKING:
    from ..read.prepared.alike_steps import AlikeSteps


def validate_v2(path: FilePath, *, limits: Limits | None = None) -> Report:
    """Check a file of version 2 from its first byte to its last; never raises for what is in the file.

    `structure` and `chain` are proven or failed; the update law, gradients and data are left to `replay`.
    """
    report = Report(os.fspath(path), VERSION)
    try:
        descriptor = open_regular(report.path)
    except TraceFileError as error:
        report.findings.append(Finding(Verdict.IO, str(error)))
        return report
    try:
        _check(report, Source(descriptor, limits or Limits()))
    except InvalidTraceError as error:
        report.findings.append(_finding(error))
    finally:
        system.release(descriptor)
    _conclude(report)
    return report


def _check(report: Report, source: Source) -> None:
    frames = FrameSource(source)
    told = OnlyTold(frames.header)
    alike: AlikeSteps | None = None
    try:
        walk = Walk(frames)
        for frame, record in checked(walk):
            told.take(frame.type, record)
            if isinstance(record, KeyframeRecord) and frame.step == 0:
                report.start = record.root.hex()
            if alike is None and frame.type == STEP.code and _may_follow(walk, frame):
                alike = _alike_steps(walk)
            if alike is not None:
                alike.follow(frame)
            report.steps = walk.steps
    except DamageError as damage:
        raise judge(frames, damage) from damage
    finally:
        report.notes += told.notes()
    if walk.seal is None:
        text = f"every frame is whole, but there is no SEAL: the run was stopped after step {walk.steps - 1}"
        raise InvalidTraceError(Verdict.UNSEALED, text)
    report.root = walk.chain.hex()


def _may_follow(walk: Walk, frame: Frame) -> bool:
    """Whether so many STEPs like this one may follow that it pays to prepare their checking."""
    return is_worth_preparing((walk.frames.source.size - walk.end) // (frame.end - frame.offset))


def _alike_steps(walk: Walk) -> "AlikeSteps":
    from ..read.prepared.alike_steps import AlikeSteps  # compiled, and so loaded only where it pays

    return AlikeSteps(walk)


def checked(walk: Walk) -> Iterator[tuple[Frame, Any]]:
    """The walk, with every recorded value of a frame held against its digest before the frame is handed on.

    Raises:
        DamageError, InvalidTraceError: as the walk does; a value that is not what its digest says is damage.
    """
    digests = tensor_digests(walk.frames, walk.layout)
    for frame, record in walk:
        check_body(walk.frames, walk.layout, digests, frame, walk.extents)
        yield frame, record


def tensor_digests(frames: FrameSource, layout: FrameLayout) -> list[TensorDigest]:
    """The digest of each tensor of the schema, ready to take elements."""
    return [TensorDigest(frames.algorithm, t.dtype, t.shape) for t in layout.schema.tensors]


def check_body(
    frames: FrameSource, layout: FrameLayout, digests: list[TensorDigest], frame: Frame, extents: list[BodyExtent]
) -> None:
    """Hold every recorded value of a frame against its digest. Raises DamageError."""
    for e, found in zip(extents, _found(frames, digests, frame, extents), strict=True):
        if found != e.digest:
            name = layout.schema.tensors[e.tensor].name
            raise DamageError(f"the digest of '{name}' ({e.what}) of frame {frame.seq} is wrong", frame.offset)


def _found(
    frames: FrameSource, digests: list[TensorDigest], frame: Frame, extents: list[BodyExtent]
) -> Iterator[bytes]:
    """The digest of each tensor of a body, which is read at once, if it is no longer than a block."""
    length = extents[-1].offset + extents[-1].nbytes if extents else 0
    if length > frames.source.limits.block:
        for e in extents:
            yield digests[e.tensor].of_blocks(frames.body_views(frame, e.offset, e.nbytes))
        return
    for memory in frames.body_views(frame, 0, length) if length else [memoryview(b"")]:
        for e in extents:
            yield digests[e.tensor].of_bytes(memory[e.offset : e.offset + e.nbytes])


def _finding(error: InvalidTraceError) -> Finding:
    at = "" if error.offset is None else f" (at byte {error.offset})"
    return Finding(error.verdict, f"{error.text}{at}")


def _conclude(report: Report) -> None:
    """What the first finding leaves proven. An unsealed or torn file is chained as far as it goes."""
    match report.verdict:
        case Verdict.OK:
            report.structure = report.chain = "proven"
        case Verdict.UNSEALED | Verdict.TORN_TAIL:
            report.structure, report.chain = "failed", "proven"
        case Verdict.CHAIN:
            report.chain = "failed"
        case _:
            report.structure = "failed"

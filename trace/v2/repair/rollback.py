"""Rolling back: a child trace that holds the first steps of its parent."""

import os
import time
from dataclasses import replace

from ....base import system
from ....base.errors import DomainError
from ...file_version import open_regular
from ..check.validate import checked
from ..errors import DamageError
from ..format.constants import PARTIAL_SUFFIX
from ..format.limits import Limits
from ..read.damage import judge
from ..read.scan import Walk
from ..read.source import FrameSource, Source
from ..write.writer import TraceWriter
from .rewrite import copy_trace, of_walk


def rollback_v2(path: str | os.PathLike[str], step: int, out: str | os.PathLike[str]) -> int:
    """Write the steps before `step` of a trace to the new file `out`; return how many were left out.

    The parent is never touched. The child has its own salt, and names its parent by the last digest of the
    parent's file chain.

    Raises:
        DomainError: the trace has no such step, or `out` exists, or its `.partial`.
        TraceFileError: the parent cannot be read, or is damaged.
        TraceWriteError: the child cannot be written.
    """
    out_name = os.fspath(out)
    for name, taken in ((out_name, os.path.exists), (out_name + PARTIAL_SUFFIX, os.path.isfile)):
        if taken(name):
            raise DomainError(f"rollback: {name} exists; rollback writes only new files; choose another name")
    descriptor = open_regular(os.fspath(path))
    try:
        frames = FrameSource(Source(descriptor, Limits(), os.fspath(path)))
        parent = Walk(frames)
        try:
            for _ in checked(parent):
                pass
        except DamageError as damage:
            raise judge(frames, damage) from damage
        if not 0 <= step <= parent.steps:
            raise DomainError(f"rollback: step: expected 0 to {parent.steps}, got {step}")
        _write_child(frames, parent, step, out)
        return parent.steps - step
    finally:
        system.release(descriptor)


def _write_child(frames: FrameSource, parent: Walk, step: int, out: str | os.PathLike[str]) -> None:
    header = replace(
        frames.header,
        salt=os.urandom(16),
        created_at=time.time_ns(),
        parent_root=parent.chain.ljust(32, b"\0"),
        parent_steps=step,
    )
    child = TraceWriter.create(out, header, parent.schema)
    try:
        copy_trace(of_walk(Walk(frames)), child, step)
    except BaseException:
        child.discard()
        raise

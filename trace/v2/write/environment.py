"""What computed a run, for people: versions, processor, threads. Never part of a proof."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from ....base.computing import versions
from ....base.runs.notes import Notes
from ..format.documents.notes import NOTES_TIME, NotesRecord


def describe_environment() -> dict[str, str | int]:
    """Versions of packages, Python and system, a digest of dgrr's sources, processor and threads, by name."""
    found: dict[str, str | int] = {**versions()}
    found["python"] = platform.python_version()
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["cpu"] = _processor()
    found["threads"] = os.cpu_count() or 1
    return found


def noted(notes: Notes, nanoseconds: int) -> NotesRecord:
    """The user's notes, with this machine beside them and a time since 1970."""
    time = datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC)
    host = {"name": platform.node() or "unknown", **describe_environment()}
    return NotesRecord(dict(notes), host, time.strftime(NOTES_TIME))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")

"""What computed a run, for people: versions, processor, threads. Never part of a proof."""

import os
import platform
from pathlib import Path

from ....base.computing import versions


def describe_environment() -> dict[str, str | int]:
    """Versions of packages, Python and system, a digest of dgrr's sources, processor and threads, by name."""
    found: dict[str, str | int] = {**versions()}
    found["python"] = platform.python_version()
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["cpu"] = _processor()
    found["threads"] = os.cpu_count() or 1
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")

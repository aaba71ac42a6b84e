"""What computed a run, for people: versions, processor, threads. Never part of a proof."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("dgrr", "numpy", "numba", "llvmlite")


def describe_environment() -> dict[str, str | int]:
    """Versions of packages, Python and system, the processor and its threads, by name."""
    found: dict[str, str | int] = {name: _version(name) for name in _PACKAGES}
    found["python"] = platform.python_version()
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["cpu"] = _processor()
    found["threads"] = os.cpu_count() or 1
    return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")

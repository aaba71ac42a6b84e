"""What computed a run, for people: versions, processor, threads. Never part of a proof."""

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("dgrr", "numpy", "numba", "llvmlite")


def describe_environment() -> str:
    """The environment as JSON text, keys sorted."""
    found: dict[str, str | int] = {name: _version(name) for name in _PACKAGES}
    found["python"] = platform.python_version()
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["cpu"] = _processor()
    found["threads"] = os.cpu_count() or 1
    return json.dumps(found, sort_keys=True)


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

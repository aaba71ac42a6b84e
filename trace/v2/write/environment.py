"""What computed a run, for people: versions, processor, threads. Never part of a proof."""

import hashlib
import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("dgrr", "numpy", "numba", "llvmlite")
_ROOT = Path(__file__).parents[3]
_COMPUTING = ("*.py", "tape/**/*.py", "runtime/**/*.py")
"""The sources that compute a run: trace formats and commands do not."""


def describe_environment() -> dict[str, str | int]:
    """Versions of packages, Python and system, a digest of dgrr's sources, processor and threads, by name."""
    found: dict[str, str | int] = {name: _version(name) for name in _PACKAGES}
    found["sources"] = sources_digest()
    found["python"] = platform.python_version()
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["cpu"] = _processor()
    found["threads"] = os.cpu_count() or 1
    return found


@cache
def sources_digest() -> str:
    """A digest of the Python files of dgrr that compute a run; "unknown" where there are none, as in an archive.

    Read once per process: two runs with equal digests ran the same code of dgrr, whatever its version says.
    """
    hasher = hashlib.sha256()
    paths = sorted({path for pattern in _COMPUTING for path in _ROOT.glob(pattern)})
    for path in paths:
        content = path.read_bytes()
        hasher.update(b"%s\0%d\0" % (path.relative_to(_ROOT).as_posix().encode(), len(content)))
        hasher.update(content)
    return hasher.hexdigest()[:32] if paths else "unknown"


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

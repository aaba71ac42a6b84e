"""What computes a run: dgrr's own sources, and the packages that make machine code and arrays of them."""

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("dgrr", "numpy", "numba", "llvmlite")
_ROOT = Path(__file__).parents[1]
_COMPUTING = ("base/*.py", "tape/**/*.py", "runtime/**/*.py")
"""The sources that compute a run: trace formats and commands do not."""


def versions() -> dict[str, str]:
    """The versions of the packages by name, and under ``sources`` the digest of dgrr's own."""
    return {**{name: _version(name) for name in _PACKAGES}, "sources": sources_digest()}


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

"""The folder in which compiled kernels are kept between processes: where it is, what it holds, emptying it.

All wings compile into it, so that nothing is ever written beside the installed sources.
"""

import os
import tempfile
import warnings
from functools import cache
from pathlib import Path
from uuid import uuid4

import platformdirs

SUFFIXES = (".nbc", ".nbi", ".ptx", ".cubin", ".ll")
"""Machine code, numba's own indices of it, code for GPUs and for CPUs elsewhere: the files that the folder holds."""


def folder() -> Path:
    """The folder: ``DGRR_CACHE_DIR``, else ``dgrr`` in ``NUMBA_CACHE_DIR``, else the user's cache folder.

    It is made when the first kernel is saved.
    """
    if ours := os.environ.get("DGRR_CACHE_DIR"):
        return Path(ours).absolute()
    if numbas := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(numbas).absolute() / "dgrr"
    return platformdirs.user_cache_path("dgrr", appauthor=False)


def can_be_written() -> bool:
    """Whether a file can be made in the folder, which is made if it is missing; warns if not."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder()).close()
    except OSError:
        warn_of_no_folder()
        return False
    return True


def keep(name: str, data: bytes) -> bool:
    """Keep a file in the folder, whole or not at all; warns, and answers False, if that cannot be."""
    path = folder() / name
    partial = path.with_name(f"{path.stem}-{uuid4().hex}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(path)
    except OSError:
        warn_of_no_folder()
        return False
    return True


@cache
def warn_of_no_folder() -> None:
    """Say, once in a process, that kernels cannot be kept."""
    warnings.warn(
        f"dgrr: kernels are compiled again in every process, because {folder()} cannot be written; "
        "set DGRR_CACHE_DIR to a folder that can",
        RuntimeWarning,
        stacklevel=2,
    )


def files() -> list[Path]:
    """Every file of compiled code in the folder."""
    return sorted(p for p in folder().rglob("*") if p.suffix in SUFFIXES)


def clear() -> None:
    """Remove the files of compiled code. Running processes keep what they have loaded. Raises OSError."""
    for path in files():
        path.unlink(missing_ok=True)

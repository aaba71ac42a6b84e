"""``dgrr cache``: the folder of compiled kernels, its size, and emptying it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from ...base import kernel_cache
from ..exit_codes import Exit
from ..file_version import TraceFileError
from .answer import Answer, done


def run(action: str) -> Answer:
    """``show`` says where the folder is and what it holds, ``clear`` removes its files of compiled code."""
    held = contents()
    if action == "show":
        return done({**held, "removed": 0, "failed": []}, shown(held))
    try:
        kernel_cache.clear()
    except OSError as error:
        raise TraceFileError(f"{error.filename}: cannot be removed: {error.strerror}", Exit.IO) from None
    return done({**contents(), "removed": held["files"], "failed": []}, f"{held['folder']}: removed {_described(held)}")


def contents() -> dict[str, Any]:
    """The folder, and how many files of how many bytes it holds."""
    files: Sequence[Path] = kernel_cache.files()
    return {
        "folder": str(kernel_cache.folder()),
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
    }


def shown(held: dict[str, Any]) -> str:
    """The folder and what it holds, in a line."""
    return f"{held['folder']}: {_described(held)}"


def _described(held: dict[str, Any]) -> str:
    """``133 files of compiled kernels, 9.2 MB``."""
    return f"{held['files']} file{'' if held['files'] == 1 else 's'} of compiled kernels, {decimal(held['bytes'])}"

"""``dgrr cache``: the folder of compiled kernels, its size, and emptying it."""

from collections.abc import Sequence
from pathlib import Path

from rich.filesize import decimal

from ... import kernel_cache
from ..exit_codes import Exit
from ..file_version import TraceFileError


def run(action: str) -> int:
    """``show`` says where the folder is and what it holds, ``clear`` removes its files of compiled code."""
    if action == "show":
        print(f"{kernel_cache.folder()}: {_described(kernel_cache.files())}")
        return Exit.OK
    described = _described(kernel_cache.files())
    try:
        kernel_cache.clear()
    except OSError as error:
        raise TraceFileError(f"{error.filename}: cannot be removed: {error.strerror}", Exit.IO) from None
    print(f"{kernel_cache.folder()}: removed {described}")
    return Exit.OK


def _described(files: Sequence[Path]) -> str:
    """``133 files of compiled kernels, 9.2 MB``."""
    size = sum(path.stat().st_size for path in files)
    return f"{len(files)} file{'' if len(files) == 1 else 's'} of compiled kernels, {decimal(size)}"

"""The last act of a writer that died between sealing its file and giving it its name."""

import fcntl
import os
from pathlib import Path

from ....atomic_file import sync_folder
from ...file_version import TraceFileError, open_regular
from ..format.constants import PARTIAL_SUFFIX, SEAL_MAGIC, SEAL_TAIL
from ..format.limits import Limits
from .scan import Walk
from .source import FrameSource, Source


def finish(path: str | os.PathLike[str]) -> bool:
    """Give `PATH.partial` its final name if it is sealed and its writer is gone; whether that was done.

    Nothing is done, and nothing raised, where there is no such file, it is damaged, or the system refuses.
    """
    partial = Path(f"{os.fspath(path)}{PARTIAL_SUFFIX}")
    if not os.path.isfile(partial):
        return False
    try:
        descriptor = open_regular(str(partial))
    except TraceFileError:
        return False
    try:
        if not _is_left_behind(descriptor, partial):
            return False
        os.fsync(descriptor)
        os.rename(partial, path)
        sync_folder(partial.parent)
    except (OSError, TraceFileError):
        return False
    finally:
        os.close(descriptor)
    return True


def _is_left_behind(descriptor: int, partial: Path) -> bool:
    """Whether the file is sealed, nobody writes it, and it has the name still. Raises what reading raises."""
    source = Source(descriptor, Limits())
    frames = FrameSource(source)
    tail = source.read(source.size - frames.algorithm.size - SEAL_TAIL.size, SEAL_TAIL.size)
    if SEAL_TAIL.unpack(tail)[1] != SEAL_MAGIC:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    walk = Walk(frames)
    for _ in walk:
        pass
    return walk.seal is not None and os.path.samestat(os.fstat(descriptor), os.stat(partial))

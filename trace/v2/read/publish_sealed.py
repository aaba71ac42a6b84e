"""The last act of a writer that died between sealing its file and giving it its name."""

import os
from pathlib import Path

from ....base import system
from ....base.atomic_file import sync_folder
from ....base.system import FilePath
from ...file_version import TraceFileError, open_regular
from ..format.constants import PARTIAL_SUFFIX, SEAL_MAGIC
from ..format.frames import SEAL_TAIL
from ..format.limits import Limits
from .scan import Walk
from .source import FrameSource, Source


def publish_sealed(path: FilePath) -> bool:
    """Give `PATH.partial` its final name if it is sealed and its writer is gone; whether that was done.

    Nothing is done, and nothing raised, where there is no such file, it is damaged, or the system refuses.
    """
    partial = Path(f"{os.fspath(path)}{PARTIAL_SUFFIX}")
    if not os.path.isfile(partial):
        return False
    try:
        descriptor = open_regular(str(partial), system.READ_WRITE)  # which fsync demands on some systems
    except TraceFileError:
        return False
    try:
        if not _is_left_behind(descriptor, partial):
            system.release(descriptor)
            return False
        system.fsync(descriptor)
    except (OSError, TraceFileError):
        system.release(descriptor)
        return False
    try:
        system.rename_and_close(descriptor, partial, path)
        sync_folder(partial.parent)
    except OSError:
        return False
    return True


def _is_left_behind(descriptor: int, partial: Path) -> bool:
    """Whether the file is sealed, nobody writes it, and it has the name still. Raises what reading raises."""
    source = Source(descriptor, Limits())
    frames = FrameSource(source)
    tail = source.read(source.size - frames.algorithm.size - SEAL_TAIL.size, SEAL_TAIL.size)
    if SEAL_TAIL.unpack(tail)[1] != SEAL_MAGIC:
        return False
    system.lock(descriptor)
    walk = Walk(frames)
    for _ in walk:
        pass
    return walk.seal is not None and os.path.samestat(os.fstat(descriptor), os.stat(partial))

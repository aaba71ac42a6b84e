"""The file a trace is written to: one writer, no half-written file under the final name."""

import fcntl
import os
import weakref
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import Buffer

from .errors import TraceWriteError

PARTIAL_SUFFIX = ".partial"
_LARGEST_GATHER = 512  # buffers of one writev; every system allows 1024

_open: "weakref.WeakSet[PartialFile]" = weakref.WeakSet()


def _close_in_child() -> None:
    for file in list(_open):
        file.abandon()


os.register_at_fork(after_in_child=_close_in_child)


class PartialFile:
    """`PATH.partial`, locked, growing at its end until `publish` gives it its name.

    After a failed write or fsync the file is dead: every further call raises, and nothing is tried again.
    """

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool) -> None:
        """Create the file.

        Raises:
            TraceWriteError: a `.partial` exists (and `overwrite` is false), another writer holds it, the path
                is a folder, or the system refuses.
        """
        self.path = Path(path)
        self.partial = Path(f"{self.path}{PARTIAL_SUFFIX}")
        self.length = 0
        self._dead = ""
        if self.path.is_dir():
            raise TraceWriteError(f"trace: {self.path} is a folder; expected the name of a file to write")
        try:
            self._descriptor = self._create(overwrite)
        except OSError as error:
            raise TraceWriteError(f"trace: cannot create {self.partial}: {error.strerror}") from error
        _open.add(self)

    def _create(self, overwrite: bool) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        try:
            descriptor = os.open(self.partial, flags | (0 if overwrite else os.O_EXCL), 0o666)
        except FileExistsError:
            raise TraceWriteError(
                f"trace: {self.partial} exists: a run was not finished or still goes on. Read it with "
                f"open_trace('{self.path}'), remove it, or pass overwrite=True to begin anew"
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            sync_folder(self.partial.parent)
        except BlockingIOError:
            os.close(descriptor)
            raise TraceWriteError(f"trace: another process is writing {self.partial}; choose another path") from None
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Append all buffers (of bytes); a short write is continued.

        Raises:
            TraceWriteError: the system refuses, or an earlier call failed.
        """
        self.check_alive()
        views = [view for buffer in buffers if (view := memoryview(buffer))]
        try:
            while views:
                views = self._write_some(views)
        except OSError as error:
            raise self._die(f"write failed: {error.strerror}") from error

    def _write_some(self, views: list[memoryview]) -> list[memoryview]:
        count = os.writev(self._descriptor, views[:_LARGEST_GATHER])
        self.length += count
        for i, view in enumerate(views):
            if count < view.nbytes:
                return [view[count:], *views[i + 1 :]]
            count -= view.nbytes
        return []

    def sync(self) -> None:
        """Wait until everything written is on the disk.

        Raises:
            TraceWriteError: fsync failed (the state of the disk is then unknown), or an earlier call failed.
        """
        self.check_alive()
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise self._die(f"fsync failed: {error.strerror}") from error

    def publish(self) -> None:
        """Sync, rename to the final name, sync the folder and close."""
        self.sync()
        try:
            os.rename(self.partial, self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            raise self._die(f"cannot rename to {self.path}: {error.strerror}") from error
        finally:
            self.close()

    def close(self) -> None:
        """Close the descriptor, which gives up the lock. Idempotent; the file stays as it is."""
        if self in _open:
            _open.discard(self)
            self._dead = self._dead or "it was closed"
            os.close(self._descriptor)

    def discard(self) -> None:
        """Delete the unfinished file and close; without effect on one that was published."""
        if self in _open:
            os.unlink(self.partial)
        self.close()

    def abandon(self) -> None:
        """Close the copy of the descriptor that a forked child inherited; the lock stays with the parent."""
        self.close()
        self._dead = "it belongs to the parent process; a forked child cannot write to it"

    @property
    def alive(self) -> bool:
        """Whether it still takes data."""
        return not self._dead

    def check_alive(self) -> None:
        """Raise TraceWriteError if the file was closed, or a write or fsync failed."""
        if self._dead:
            raise TraceWriteError(f"trace: {self.partial} takes no more data: {self._dead}")

    def _die(self, reason: str) -> TraceWriteError:
        self._dead = reason
        return TraceWriteError(
            f"trace: {self.partial}: {reason}. The writer has stopped; what was written before can be read"
        )


def sync_folder(folder: Path) -> None:
    """Make names in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

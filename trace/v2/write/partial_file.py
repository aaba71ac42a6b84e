"""The file a trace is written to: one writer, no half-written file under the final name."""

import os
import weakref
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

from typing_extensions import Buffer

from ....base import system
from ....base.atomic_file import replacing, require_replaceable, sync_folder
from ....base.system import FilePath
from ...file_version import open_regular
from ..errors import TraceWriteError
from ..format.constants import PARTIAL_SUFFIX
from ..read.publish_sealed import publish_sealed
from ..read.without_steps import is_without_steps
from .torn import torn_files

_BLOCK = 1 << 20
_LARGEST_GATHER = 512  # buffers of one writev; every system allows 1024

_open: "weakref.WeakSet[PartialFile]" = weakref.WeakSet()


def _close_in_child() -> None:
    for file in list(_open):
        file.abandon()


system.after_fork(_close_in_child)


class PartialFile:
    """`PATH.partial`, locked, growing at its end until `publish` gives it its name.

    Made by `create` or `reopen`. After a failed write or fsync the file is dead: every further call raises, and
    nothing is tried again.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.partial = _partial(path)
        self.descriptor = descriptor
        self._dead = ""
        self.is_copy = False
        """Whether it is the finished file, byte for byte, and nothing more."""
        _open.add(self)

    @classmethod
    def create(cls, path: FilePath, *, overwrite: bool) -> Self:
        """Begin an empty file, also in the place of a `.partial` that nobody writes and that holds no step.

        Raises:
            TraceWriteError: the path, or a `.partial` with steps, exists (and `overwrite` is false), another writer
                holds it, the path is that of no file, or the system refuses.
        """
        path = _writable(path)
        partial = _partial(path)
        publish_sealed(path)
        exclusive = 0 if overwrite or is_without_steps(partial) else system.NEW
        try:
            file = cls(path, system.open_descriptor(partial, system.WRITE | exclusive))
        except FileExistsError:
            raise TraceWriteError(
                f"trace: {partial} exists: its run is unfinished, or still going on. Read it with "
                f"open_trace('{path}'), resume it, remove it, choose another path, or start again with overwrite=True"
            ) from None
        except OSError as error:
            raise TraceWriteError(f"trace: cannot create {partial}: {error.strerror}") from error
        with _released_on_error(file, "create", made=exclusive != 0):
            _lock(file.descriptor, partial)
            if not overwrite:  # under the lock, without which none gets the final name
                file._require_free()
            file._empty()
        return file

    @classmethod
    def reopen(cls, path: FilePath) -> Self:
        """Take over an unfinished file as it is, or a copy of the finished one, for reading; writing begins with `cut`.

        A copy that was interrupted is completed. The finished file stays as it is until `publish` replaces it.

        Raises:
            TraceWriteError: there is neither file, another writer holds the `.partial`, the path is that of no file,
                or the system refuses.
        """
        path = _writable(path)
        partial = _partial(path)
        made = not os.path.exists(partial)
        if made and not os.path.exists(path):
            raise TraceWriteError(f"trace: cannot resume {path}: there is no {partial}; begin a new trace")
        try:
            file = cls(path, system.open_descriptor(partial, system.READ_WRITE | (system.MAKE if made else 0)))
        except OSError as error:
            raise TraceWriteError(f"trace: cannot open {partial}: {error.strerror}") from error
        with _released_on_error(file, "copy the finished trace to" if made else "lock"):
            _lock(file.descriptor, partial)
            file.is_copy = made
            if os.path.exists(path):
                file._complete_copy()
        return file

    def _complete_copy(self) -> None:
        """Append what the finished file has more, if this one is the beginning of it."""
        finished = open_regular(str(self.path))
        try:
            end, length = os.fstat(finished).st_size, os.fstat(self.descriptor).st_size
            if length > end or not _is_equal(self.descriptor, finished, length):
                return
            self.is_copy = True
            system.seek(self.descriptor, length)
            for offset in range(length, end, _BLOCK):
                self.write([system.pread(finished, min(_BLOCK, end - offset), offset)])
            sync_folder(self.partial.parent)
        finally:
            system.release(finished)

    def give_up(self) -> None:
        """Close a file that nothing was appended to; one that is a mere copy of the finished file is removed."""
        if self.is_copy:
            self.discard()
        else:
            self.close()

    def _require_free(self) -> None:
        """Give the new `.partial` up if the final name is taken: what is finished may have been published."""
        if os.path.exists(self.path):
            self.discard()
            raise TraceWriteError(
                f"trace: {self.path} is finished, and is not overwritten: choose another path, or pass overwrite=True "
                "to replace it"
            )

    def _empty(self) -> None:
        """Drop what the file holds, for good, since a power cut may leave parts of it beside parts of what follows."""
        if os.fstat(self.descriptor).st_size:
            system.truncate(self.descriptor, 0)
            system.fsync(self.descriptor)
        sync_folder(self.partial.parent)

    def keep_tail(self, beginning: int, start: int) -> None:
        """Copy the first `beginning` bytes, and those from `start` on, to the next of `torn_files`.

        Raises:
            TraceWriteError: the system refuses; the file is as it was.
        """
        torn = torn_files(self.path).next
        try:
            with replacing(torn) as copy:
                self._copy(copy, 0, beginning)
                self._copy(copy, start, os.fstat(self.descriptor).st_size)
        except OSError as error:
            raise TraceWriteError(f"trace: cannot keep what is cut off in {torn}: {error.strerror}") from error

    def _copy(self, copy: IO[bytes], start: int, end: int) -> None:
        for offset in range(start, end, _BLOCK):
            copy.write(system.pread(self.descriptor, min(_BLOCK, end - offset), offset))

    def cut(self, length: int) -> None:
        """Drop what stands behind the first `length` bytes, and append there from now on.

        The new length is on the disk before anything is appended: a process or machine that dies meanwhile
        leaves the file as it was, or cut.

        Raises:
            TraceWriteError: the system refuses.
        """
        self.check_alive()
        try:
            system.truncate(self.descriptor, length)
            system.seek(self.descriptor, length)
        except OSError as error:
            raise self._die(f"cannot cut it after {length} bytes: {error.strerror}") from error
        self.sync()

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
        count = system.write(self.descriptor, views[:_LARGEST_GATHER])
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
            system.fsync(self.descriptor)
        except OSError as error:
            raise self._die(f"fsync failed: {error.strerror}") from error

    def publish(self) -> None:
        """Sync, rename to the final name, sync the folder and close.

        Raises:
            TraceWriteError: the system refuses. If it is the folder's fsync that fails, the file has its name already.
        """
        self.sync()
        self._forget()
        try:
            system.rename_and_close(self.descriptor, self.partial, self.path)
        except OSError as error:
            raise self._die(f"cannot rename to {self.path}: {error.strerror}") from error
        try:
            sync_folder(self.path.parent)
        except OSError as error:
            raise TraceWriteError(f"trace: {self.path} is whole and has its name, but {error.strerror}") from error

    def close(self) -> None:
        """Close the descriptor, which gives up the lock. Idempotent; the file stays as it is.

        Raises:
            TraceWriteError: the system says now that it has not kept what was written.
        """
        alive = self.alive
        try:
            if self._forget():
                system.close(self.descriptor)
        except OSError as error:
            if alive:
                raise self._die(f"cannot close it: {error.strerror}") from error

    def release(self) -> None:
        """Close the descriptor of a file that is given up. Idempotent."""
        if self._forget():
            system.release(self.descriptor)

    def discard(self) -> None:
        """Delete the unfinished file and close; without effect on one that was closed or published.

        Raises:
            TraceWriteError: it cannot be deleted.
        """
        try:
            if self._forget():
                system.remove_and_close(self.descriptor, self.partial)
        except OSError as error:
            raise TraceWriteError(f"trace: cannot remove {self.partial}: {error.strerror}") from error

    def abandon(self) -> None:
        """Close the copy of the descriptor that a forked child inherited; the lock stays with the parent."""
        self.release()
        self._dead = "it belongs to the parent process; a forked child cannot write to it"

    def _forget(self) -> bool:
        """Take no more data; whether the descriptor is still to be closed."""
        held = self in _open
        _open.discard(self)
        self._dead = self._dead or "it was closed"
        return held

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


def _partial(path: Path) -> Path:
    return Path(f"{path}{PARTIAL_SUFFIX}")


def _writable(path: FilePath) -> Path:
    """The path, if both its names are free or those of files."""
    for name in (Path(path), _partial(Path(path))):
        try:
            require_replaceable(name)
        except OSError as error:
            raise TraceWriteError(f"trace: cannot write {name}: {error.strerror}") from error
    return Path(path)


def _is_equal(one: int, other: int, length: int) -> bool:
    """Whether two files have the same first bytes."""
    blocks = ((min(_BLOCK, length - offset), offset) for offset in range(0, length, _BLOCK))
    return all(system.pread(one, *block) == system.pread(other, *block) for block in blocks)


@contextmanager
def _released_on_error(file: PartialFile, action: str, *, made: bool = False) -> Generator[None]:
    """Give the file up if the system refuses; one that was `made` just now is removed."""
    try:
        yield
    except OSError as error:
        if made:
            file.discard()
        file.give_up()
        raise TraceWriteError(f"trace: cannot {action} {file.partial}: {error.strerror}") from error
    except BaseException:
        file.give_up()
        raise


def _lock(descriptor: int, partial: Path) -> None:
    """Become the one writer of the file that has the name now.

    The writer before may have given the file its final name between our opening and our lock: that file is
    finished and must not be touched.
    """
    try:
        system.lock(descriptor)
        same = os.path.samestat(os.fstat(descriptor), os.stat(partial))
    except BlockingIOError:
        raise TraceWriteError(
            f"trace: another writer is at work on {partial}: choose another path, or try again once it has ended"
        ) from None
    except FileNotFoundError:
        same = False
    if not same:
        raise TraceWriteError(f"trace: another process has just finished or replaced {partial}; look at it again")

"""Files that are whole or not there, and names that outlive a power cut."""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from . import system
from .system import FilePath


@contextmanager
def replacing(path: FilePath) -> Generator[IO[bytes], None, None]:
    """A new file, to write and read, which takes the name ``path`` once it is on the disk.

    What stood under the name stays until then, and for good if an error is raised inside or the system refuses. After
    an error of the folder's fsync alone, the new file has the name already. Raises OSError that names the file, also
    where the name stands for something other than a file.
    """
    target = Path(path)
    temporary = target.with_name(f"{target.name}.tmp")
    require_replaceable(target)
    require_replaceable(temporary)
    with _named(temporary, target):
        file = system.new_file(temporary)
        try:
            with file:
                yield file
                file.flush()
                system.fsync(file.fileno())
            system.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                system.remove(temporary)
            raise
    sync_folder(target.parent)


@contextmanager
def _named(temporary: Path, target: Path) -> Generator[None, None, None]:
    """Have errors name the file that was asked for, and not the one that becomes it."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename in (None, temporary, os.fspath(temporary)):
            error.filename = os.fspath(target)
            del error.filename2
        raise


def require_replaceable(path: FilePath) -> None:
    """Refuse a name under which there is something other than a regular file, or a link to one.

    A rename onto a device or a FIFO would take its place, and opening a FIFO waits for a reader.
    Raises OSError.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError(errno.EINVAL, "it exists and is not a regular file", os.fspath(path))


def sync_folder(folder: FilePath) -> None:
    """Let the names in a folder, made or changed, outlive a power cut. Raises OSError that says so."""
    try:
        system.fsync_folder(folder)
    except OSError as error:
        text = f"cannot sync the folder, so that a power cut may take the names in it back: {error.strerror or error}"
        raise OSError(error.errno, text, os.fspath(folder)) from error

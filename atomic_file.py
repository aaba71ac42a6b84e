"""Files that are whole or not there, and names that outlive a power cut."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[IO[bytes], None, None]:
    """A new file, to write and read, which takes the name ``path`` once it is on the disk.

    What stood under the name stays until then, and for good if an error is raised inside or the system refuses. After
    an error of the folder's fsync alone, the new file has the name already.
    """
    target = Path(path)
    temporary = target.with_name(f"{target.name}.tmp")
    file = temporary.open("w+b")
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(target.parent)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Let the names in a folder, made or changed, outlive a power cut. Raises OSError that says so."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        text = f"cannot sync the folder, so that a power cut may take the names in it back: {error.strerror or error}"
        raise OSError(error.errno, text, os.fspath(folder)) from error

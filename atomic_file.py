"""Files that are whole or not there, and names that outlive a power cut."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[IO[bytes], None, None]:
    """A new file, to write and read, which takes the name ``path`` once it is on the disk.

    What stood under the name stays until then, and for good if an error is raised inside.
    """
    target = Path(path)
    temporary = target.with_name(f"{target.name}.tmp")
    with temporary.open("w+b") as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            temporary.unlink()
            raise
    os.replace(temporary, target)
    sync_folder(target.parent)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Let the names in a folder, made or changed, outlive a power cut. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

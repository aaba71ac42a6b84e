"""Writing a trace: under another name, sealed last, and moved into place in one step.

Nothing is ever seen under the final name but a whole trace. Records go to `PATH.partial` behind a header that
says "no steps"; sealing patches the header, syncs the file, renames it and syncs the folder. A writer that is
left without sealing takes its partial file away; one that is killed leaves it behind, and no reader accepts
it.
"""

import os
from contextlib import suppress
from types import TracebackType

from ...base import system
from ...base.atomic_file import require_replaceable, sync_folder
from ..file_version import os_errors_named
from .compiled import Words
from .file_crc import valid_records_crc32
from .layout import pack_header


def partial_path(path: str) -> str:
    """Return the name under which the trace `path` is written until it is sealed."""
    return path + ".partial"


class WriterV1:
    """A context that takes records and leaves a sealed trace, or nothing.

    Args of the constructor: the final path, and the seed, learning rate and creation time (unix seconds) of
    the header.

    Raises:
        TraceFileError: the file cannot be created, written, synced or renamed.
    """

    def __init__(self, path: str, seed: int, learning_rate: float, created_at: int) -> None:
        self.path = path
        self.step_count = 0
        self._about = (seed, learning_rate, created_at)
        self._partial = partial_path(path)
        for name in (path, self._partial):
            with os_errors_named("write", name):
                require_replaceable(name)
        with os_errors_named("create", self._partial):
            self._fd = system.open_descriptor(self._partial, system.WRITE | system.EMPTY)
        self._sealed = False
        try:
            self._write(self._header())
        except BaseException:
            self._give_up()
            raise

    def _header(self) -> bytes:
        seed, learning_rate, created_at = self._about
        return pack_header(seed, self.step_count, learning_rate, valid_records_crc32(self.step_count), created_at)

    def _write(self, data: bytes | memoryview) -> None:
        with os_errors_named("write", self._partial):
            left = memoryview(data)
            while left:
                left = left[system.write(self._fd, [left]) :]

    def _close(self) -> None:
        """Close the file, which is on the disk, or to be removed. Idempotent."""
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            system.release(descriptor)

    def append(self, records: Words) -> None:
        """Append records, an array (n, 9) of words, that continue the ones before."""
        self._write(records.astype("<u8", copy=False).data.cast("B"))
        self.step_count += len(records)

    def seal(self) -> None:
        """Complete the header and give the trace its name; after this the writer takes nothing more."""
        with os_errors_named("write", self._partial):
            system.seek(self._fd, 0)
        self._write(self._header())
        with os_errors_named("write", self._partial):
            system.fsync(self._fd)
        self._close()  # not every system renames open files
        with os_errors_named("create", self.path):
            system.replace(self._partial, self.path)
            self._sealed = True
        with os_errors_named("sync the name of", self.path):
            sync_folder(os.path.dirname(self.path) or ".")

    def __enter__(self) -> "WriterV1":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._sealed:
            self._give_up()

    def _give_up(self) -> None:
        self._close()
        with suppress(FileNotFoundError), os_errors_named("remove", self._partial):
            system.remove(self._partial)

"""Reading a trace in bounded blocks.

What is read is decided by the size of the file, taken once when it is opened: nothing is allocated from a
count that the file claims. A file whose size changes while it is read gives an error instead of an answer.
"""

import os
from collections.abc import Iterator
from types import TracebackType

import numpy as np

from ...base import system
from ..file_version import TraceFileError, open_regular, os_errors_named
from .compiled import Words
from .layout import HEADER_SIZE, RECORD_SIZE, RECORD_WORDS, record_offset

BLOCK_RECORDS = 8192  # 576 KiB: stays in a core's second-level cache


class TraceReaderV1:
    """A context over an open file; `size` is the file's in bytes, `header` its first 64 bytes or fewer.

    Nothing of the content is checked here.

    Raises:
        TraceFileError: the file cannot be opened or read, or changes its size while it is read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = open_regular(path)
        try:
            self.size = os.fstat(self._fd).st_size
            self.header = self._read_at(0, min(HEADER_SIZE, self.size))
        except TraceFileError:
            system.release(self._fd)
            raise

    @property
    def whole_records(self) -> int:
        """How many whole records the file has room for."""
        return max(0, self.size - HEADER_SIZE) // RECORD_SIZE

    def record(self, step: int) -> bytes:
        """Return the 72 bytes of a step that lies inside the file."""
        return self._read_at(record_offset(step), RECORD_SIZE)

    def blocks(self, count: int) -> Iterator[Words]:
        """Yield the first `count` records as arrays (n, 9), n <= 8192; each is overwritten by the next."""
        buffer = np.empty((min(count, BLOCK_RECORDS), RECORD_WORDS), "<u8")
        for first in range(0, count, BLOCK_RECORDS):
            block = buffer[: count - first]
            self._fill(block.data.cast("B"), record_offset(first))
            yield block.astype(np.uint64, copy=False)

    def check_size(self) -> None:
        """Raise unless the file still has the size that it had when it was opened."""
        size = os.fstat(self._fd).st_size
        if size != self.size:
            raise self._changed(size)

    def _changed(self, size: int) -> TraceFileError:
        change = "grew" if size > self.size else "shrank"
        return TraceFileError(
            f"{self.path} {change} from {self.size} to {size} bytes while it was read: is it still being written?"
        )

    def _read_at(self, offset: int, count: int) -> bytes:
        buffer = bytearray(count)
        self._fill(memoryview(buffer), offset)
        return bytes(buffer)

    def _fill(self, buffer: memoryview, offset: int) -> None:
        while buffer:
            with os_errors_named("read", self.path):
                count = system.pread_into(self._fd, buffer, offset)
            if count == 0:
                raise self._changed(offset)
            buffer, offset = buffer[count:], offset + count

    def __enter__(self) -> "TraceReaderV1":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        system.release(self._fd)

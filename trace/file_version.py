"""Opening a trace file, and the eight bytes that both versions of the format begin with."""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager

from ..base import system
from ..base.errors import DgrrError
from .exit_codes import Exit

MAGIC = b"DGRR"
PREFIX_SIZE = 8  # magic, u16 version, and two bytes that belong to the version


class TraceFileError(DgrrError):
    """A command cannot give its answer; `exit` is the exit code that it ends with."""

    def __init__(self, message: str, exit: Exit = Exit.IO) -> None:
        super().__init__(message)
        self.exit = exit


class TruncatedFileError(TraceFileError):
    """A file that ends inside the eight bytes that say what it is: whoever began it died at once."""


@contextmanager
def os_errors_named(action: str, path: str) -> Generator[None]:
    """Turn an `OSError` of the body into a `TraceFileError` that names the action and the path.

    Raises:
        TraceFileError: `cannot read trace.dgrr: Input/output error`, with exit code IO.
    """
    try:
        yield
    except OSError as error:
        raise TraceFileError(f"cannot {action} {path}: {error.strerror or error}") from error


def _require_regular(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file", path)


def open_regular(path: str, flags: int = system.READ) -> int:
    """Open `path`, for reading alone unless `flags` say more, and return its descriptor, which the caller closes.

    The type is looked at before the opening, which can have effects on a device, and after it, since the
    path may have changed in between; reading does not wait at a FIFO that slips through.

    Raises:
        TraceFileError: a folder, a FIFO, a device, a missing or an unreadable file (exit code IO).
    """
    with os_errors_named("open", path):
        _require_regular(os.stat(path).st_mode, path)
        fd = system.open_descriptor(path, flags)
        try:
            _require_regular(os.fstat(fd).st_mode, path)
        except OSError:
            system.release(fd)
            raise
    return fd


def version_of(path: str) -> int:
    """Return the format version that the file says it has, 0 to 65535.

    Raises:
        TraceFileError: the file cannot be read (exit code IO) or does not begin with the magic (exit code
            VALIDATION); TruncatedFileError if it is shorter than 8 bytes.
    """
    fd = open_regular(path)
    try:
        with os_errors_named("read", path):
            prefix = system.pread(fd, PREFIX_SIZE, 0)
    finally:
        system.release(fd)
    if not prefix.startswith(MAGIC[: len(prefix)]):
        raise TraceFileError(
            f"{path} is not a DGRR trace: it begins with {prefix[:4]!r}, expected {MAGIC!r}", Exit.VALIDATION
        )
    if len(prefix) < PREFIX_SIZE:
        text = f"{path} ends inside its beginning: truncated header, the file has {len(prefix)} bytes"
        raise TruncatedFileError(text, Exit.VALIDATION)
    return int.from_bytes(prefix[4:6], "little")

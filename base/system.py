"""What dgrr asks of the operating system: files, locks, forks, threads. Nothing else in the package names these calls.

Each service has another way where a system lacks the call. Tests put their own service in the place of one, to let it
fail, or to write down what was asked.
"""

import ctypes
import errno
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import IO, Any, TypeAlias

from typing_extensions import Buffer

FilePath: TypeAlias = str | os.PathLike[str]
"""What names a file."""


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


_fcntl, _msvcrt = _module("fcntl"), _module("msvcrt")

_ALWAYS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""No program that is started inherits a file; and no system changes the ends of lines."""

READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
"""Open for reading; a FIFO without a writer does not wait for one."""
READ_WRITE = os.O_RDWR
MAKE = os.O_CREAT
"""To be added to READ_WRITE: a file that is missing is made."""
WRITE = os.O_WRONLY | os.O_CREAT
"""Open for writing; a file that is missing is made."""
NEW, EMPTY = os.O_EXCL, os.O_TRUNC
"""To be added to WRITE: the file must be missing; what it holds is dropped."""

_RENAMES_OPEN_FILES = os.name != "nt"
"""Whether a file may get another name, or be removed, while it is open."""

_FOLDERS_OPEN = hasattr(os, "O_DIRECTORY")
_NOT_SUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.ENOTTY)
_LOCKED_BYTE = 1 << 43
"""Where Windows locks a byte: behind all that a file holds, since nobody else can read what is locked there."""


# Files by their descriptors.


def open_descriptor(path: FilePath, flags: int) -> int:
    """Open a file, or make it; the caller closes the descriptor. Raises OSError."""
    return os.open(path, flags | _ALWAYS, 0o666)


def close(descriptor: int) -> None:
    """Close a file. Raises OSError: what was written to it may be lost."""
    os.close(descriptor)


def release(descriptor: int) -> None:
    """Close a file of which nothing depends on how that ends: it was only read, or is on the disk."""
    with suppress(OSError):
        close(descriptor)


_positions = threading.Lock()


def pread(descriptor: int, length: int, offset: int) -> bytes:
    """The bytes at an offset: ``length`` of them, or fewer where the file ends. Raises OSError."""
    data = _pread(descriptor, length, offset)
    while len(data) < length and (more := _pread(descriptor, length - len(data), offset + len(data))):
        data += more
    return data


def _pread(descriptor: int, length: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, offset)
    with _positions:  # which all threads share
        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        try:
            os.lseek(descriptor, offset, os.SEEK_SET)
            return os.read(descriptor, length)
        finally:
            os.lseek(descriptor, before, os.SEEK_SET)


def pread_into(descriptor: int, buffer: memoryview, offset: int) -> int:
    """Read bytes at an offset into a buffer of bytes; how many: 0 where the file ends. Raises OSError."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [buffer], offset)
    data = _pread(descriptor, len(buffer), offset)
    buffer[: len(data)] = data
    return len(data)


def write(descriptor: int, buffers: Sequence[Buffer]) -> int:
    """Write buffers of bytes at the file's position, or a part of them; how many bytes. Raises OSError."""
    if hasattr(os, "writev"):
        return os.writev(descriptor, buffers)
    return os.write(descriptor, buffers[0])


def seek(descriptor: int, offset: int) -> None:
    """Write at an offset from now on. Raises OSError."""
    os.lseek(descriptor, offset, os.SEEK_SET)


def truncate(descriptor: int, length: int) -> None:
    """Cut a file behind its first ``length`` bytes. Raises OSError."""
    os.ftruncate(descriptor, length)


def fsync(descriptor: int) -> None:
    """Wait until what was written to a file is on the disk. Raises OSError: it may be there or not."""
    full = getattr(_fcntl, "F_FULLFSYNC", None)
    if full is not None:  # of macOS, where fsync alone leaves it in the memory of the disk
        try:
            _fcntl.fcntl(descriptor, full)
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
        else:
            return
    os.fsync(descriptor)


def lock(descriptor: int) -> None:
    """Lock a file until this descriptor, and every copy that a fork made of it, is closed.

    Where a system has neither ``flock`` nor what Windows has, nothing is locked. Raises BlockingIOError if it is locked
    through another descriptor, of this process or not; OSError.
    """
    if _fcntl is not None:
        _fcntl.flock(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    elif _msvcrt is not None:
        _lock_byte(descriptor)


def _lock_byte(descriptor: int) -> None:
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    try:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        _msvcrt.locking(descriptor, _msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EDEADLK):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
        raise
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)


# Files by their names.


def new_file(path: FilePath) -> IO[bytes]:
    """An empty file to write and read, in the place of what it held. Raises OSError."""
    return open(path, "w+b")


def replace(source: FilePath, target: FilePath) -> None:
    """Give a file another name, in the place of what has it, at once. Raises OSError."""
    os.replace(source, target)


def rename_and_close(descriptor: int, source: FilePath, target: FilePath) -> None:
    """Give an open file, which is on the disk, another name, and close it. Raises OSError; it is closed then too.

    Its lock is held until it has the name, unless the system renames no open files.
    """
    _at_close(descriptor, lambda: replace(source, target))


def remove_and_close(descriptor: int, path: FilePath) -> None:
    """Remove the name of an open file, and close it. Raises OSError; it is closed then too."""
    _at_close(descriptor, lambda: remove(path))


def _at_close(descriptor: int, act: Callable[[], None]) -> None:
    try:
        if _RENAMES_OPEN_FILES:
            act()
    finally:
        release(descriptor)
    if not _RENAMES_OPEN_FILES:
        act()


def link(source: FilePath, target: FilePath) -> None:
    """Give a file one more name. Raises FileExistsError if it is taken; OSError."""
    os.link(source, target)


def remove(path: FilePath) -> None:
    """Remove a name. Raises OSError."""
    os.unlink(path)


def fsync_folder(folder: FilePath) -> None:
    """Wait until the names in a folder are on the disk; nothing where folders cannot be opened. Raises OSError."""
    if not _FOLDERS_OPEN:
        return
    descriptor = open_descriptor(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fsync(descriptor)
    finally:
        release(descriptor)


def discard_output(descriptor: int) -> None:
    """Let what is written to an open file go nowhere. Raises OSError."""
    nowhere = open_descriptor(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    close(nowhere)


# Processes and threads.


def after_fork(call: Callable[[], object]) -> None:
    """Have a function called in every forked child, where processes fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


KERNEL_STACK = 8 << 20
"""Bytes of stack of a thread that runs kernels, whose frames take 64 KiB: musl gives a thread 128 KiB."""


def start_thread(thread: threading.Thread) -> None:
    """Start a thread that runs kernels."""
    before = threading.stack_size(KERNEL_STACK)
    try:
        thread.start()
    finally:
        threading.stack_size(before)


def address_of_yield() -> int:
    """Address of a C function without arguments that lets other threads run."""
    address = ctypes.cast(_yield_in_c(), ctypes.c_void_p).value
    assert address is not None
    return address


def _yield_in_c() -> Any:
    if windows := getattr(ctypes, "windll", None):
        return windows.kernel32.SwitchToThread
    try:
        return ctypes.CDLL(None).sched_yield
    except (AttributeError, OSError):  # a C library without it, or a Python without loading
        return _yield_in_python()


@cache
def _yield_in_python() -> Any:
    """A C function that asks Python; kept, since its address is used as long as there are threads."""

    def yield_now() -> int:
        time.sleep(0)
        return 0

    return ctypes.CFUNCTYPE(ctypes.c_int)(yield_now)


def addresses_of_interrupts() -> list[int]:
    """Addresses of C functions by which a thread takes hold of Python, asks whether Ctrl-C came, and lets go.

    The second is true once for each Ctrl-C, which Python then does not know of any more.
    """
    names = ("PyGILState_Ensure", "PyOS_InterruptOccurred", "PyGILState_Release")
    found = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in names]
    return [address or 0 for address in found]

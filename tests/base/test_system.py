"""The services of the system: what each does, and what it does on a system that lacks the call it is made of."""

import ast
import ctypes
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from dgrr.base import system

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]

# Nothing else in the package asks the system.

PORTABLE = {"PathLike", "fspath", "path", "environ", "getcwd", "getpid", "urandom", "sep", "stat", "fstat", "utime"}
PORTABLE |= {"cpu_count", "SEEK_END", "pathsep", "scandir", "get_terminal_size", "_exit"}
"""Names of `os` that every system has, and that neither write nor wait."""

OWN_WAY = {
    "tape/numerics/engine/side_by_side.py": "forks, on Linux alone",
    "base/interruption.py": "writes a last word, before anything else is loaded",
}

MODULES = {"fcntl", "msvcrt", "mmap", "posix", "nt", "_winapi", "resource"}


def asked(path: Path) -> Iterator[str]:
    """What a module takes of the system itself."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=attr) if attr not in PORTABLE:
                yield f"os.{attr}"
            case ast.ImportFrom(module="os", names=names):
                yield from (f"os.{alias.name}" for alias in names if alias.name not in PORTABLE)
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in MODULES)
            case ast.ImportFrom(module=str(module)) if module in MODULES:
                yield module
            case ast.Attribute(value=ast.Name(id="ctypes"), attr="CDLL" | "windll" | "cdll"):
                yield "ctypes"
            case _:
                pass


def test_nobody_else_asks_the_system() -> None:
    found = {}
    for path in (
        path for wing in ("base", "screen", "tape", "runtime", "trace") for path in (ROOT / wing).rglob("*.py")
    ):
        name = path.relative_to(ROOT).as_posix()
        if name != "base/system.py" and name not in OWN_WAY and (names := sorted(set(asked(path)))):
            found[name] = names
    assert found == {}


def test_who_asks_is_found(tmp_path: Path) -> None:
    program = "import os, fcntl; from os import fsync, path; os.rename('a', 'b'); os.path.exists(ctypes.CDLL(None))"
    (tmp_path / "module.py").write_text(program)
    assert set(asked(tmp_path / "module.py")) == {"fcntl", "os.fsync", "os.rename", "ctypes"}


# What a system may lack.


def test_short_reads_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").write_bytes(bytes(range(100)))
    descriptor, real = system.open_descriptor(tmp_path / "t", system.READ), os.pread
    monkeypatch.setattr(os, "pread", lambda file, length, offset: real(file, min(length, 7), offset))
    assert system.pread(descriptor, 50, 10) == bytes(range(10, 60))
    assert system.pread(descriptor, 50, 80) == bytes(range(80, 100))
    system.close(descriptor)


def test_reading_without_pread_leaves_the_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").write_bytes(bytes(range(100)))
    descriptor = system.open_descriptor(tmp_path / "t", system.READ_WRITE)
    for name in ("pread", "preadv", "writev"):
        monkeypatch.delattr(os, name)
    system.seek(descriptor, 3)
    buffer = bytearray(200)
    assert system.pread(descriptor, 5, 50) == bytes(range(50, 55))
    assert system.pread_into(descriptor, memoryview(buffer), 90) == 10
    assert buffer[:11] == bytes(range(90, 100)) + b"\0"
    assert system.write(descriptor, [b"ab", b"cd"]) == 2
    system.close(descriptor)
    assert (tmp_path / "t").read_bytes()[:6] == b"\0\1\2ab\5"


def test_threads_read_without_pread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The position of a file is one for all threads."""
    (tmp_path / "t").write_bytes(b"".join(i.to_bytes(4, "big") for i in range(10_000)))
    descriptor = system.open_descriptor(tmp_path / "t", system.READ)
    monkeypatch.delattr(os, "pread")
    wrong: list[int] = []

    def read(first: int) -> None:
        wrong.extend(i for i in range(first, 10_000, 4) if system.pread(descriptor, 4, 4 * i) != i.to_bytes(4, "big"))

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    system.close(descriptor)
    assert not wrong


@pytest.mark.parametrize(
    ("code", "synced"), [(None, []), (errno.ENOTSUP, ["fsync"]), (errno.EINVAL, ["fsync"]), (errno.EIO, None)]
)
def test_an_fsync_that_reaches_the_disk_on_macos(
    monkeypatch: pytest.MonkeyPatch, code: int | None, synced: list[str] | None
) -> None:
    calls: list[str] = []

    def fcntl(descriptor: int, command: int) -> None:
        assert (descriptor, command) == (7, 51)
        if code is not None:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(system, "_fcntl", SimpleNamespace(fcntl=fcntl, F_FULLFSYNC=51))
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append("fsync"))
    if synced is None:
        with pytest.raises(OSError, match="Input/output error"):
            system.fsync(7)
    else:
        system.fsync(7)
    assert calls == (synced or [])


@pytest.mark.parametrize("code", [errno.EACCES, errno.EDEADLK])
def test_a_lock_of_windows_is_a_byte_behind_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    places: list[tuple[int, int]] = []

    def locking(descriptor: int, mode: int, count: int) -> None:
        places.append((os.lseek(descriptor, 0, os.SEEK_CUR), count))
        if len(places) > 1:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(system, "_fcntl", None)
    monkeypatch.setattr(system, "_msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    descriptor = system.open_descriptor(tmp_path / "t", system.WRITE)
    system.seek(descriptor, 5)
    system.lock(descriptor)
    with pytest.raises(BlockingIOError):
        system.lock(descriptor)
    assert places == [(1 << 43, 1)] * 2
    assert os.lseek(descriptor, 0, os.SEEK_CUR) == 5
    system.close(descriptor)


def test_what_a_python_without_a_c_library_yields_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: None) -> None:
        raise OSError("dynamic loading is not supported")

    call = ctypes.CFUNCTYPE(ctypes.c_int)
    assert call(system.address_of_yield())() == 0
    monkeypatch.setattr(ctypes, "CDLL", refused)
    assert call(system.address_of_yield())() == 0


# Threads.

STACKS = """
import ctypes, threading
from dgrr.base import system
c = ctypes.CDLL(None, use_errno=True)

class Attributes(ctypes.Union):
    _fields_ = [("bytes", ctypes.c_char * 64), ("words", ctypes.c_long)]

def size():
    found, attributes = ctypes.c_size_t(), Attributes()
    c.pthread_self.restype = ctypes.c_void_p
    assert c.pthread_getattr_np(ctypes.c_void_p(c.pthread_self()), ctypes.byref(attributes)) == 0
    assert c.pthread_attr_getstacksize(ctypes.byref(attributes), ctypes.byref(found)) == 0
    c.pthread_attr_destroy(ctypes.byref(attributes))
    return found.value

small = Attributes()
assert c.pthread_attr_init(ctypes.byref(small)) == 0
assert c.pthread_attr_setstacksize(ctypes.byref(small), ctypes.c_size_t(128 << 10)) == 0
assert c.pthread_setattr_default_np(ctypes.byref(small)) == 0  # what musl gives

found = []
def run(start):
    thread = threading.Thread(target=lambda: found.append(size()))
    start(thread)
    thread.join()
run(threading.Thread.start)
run(system.start_thread)
run(threading.Thread.start)
print(*(n >> 10 for n in found))

import numpy as np
from dgrr.tape import Tensor, f32, ops, set_threads
from dgrr.tape.numerics.engine import launch
from dgrr.runtime.data.ahead import Ahead
set_threads(3)
launch.PARALLEL_WORK = 0
x = Tensor(np.ones((256, 256), np.float32))
assert (ops.matmul(x, x).numpy() == 256).all()  # its frames take 64 KiB
print(next(Ahead(iter([size]), 1))() >> 10, next(Ahead((size() for _ in range(1)), 1)) >> 10)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc tells the size of a stack")
def test_threads_of_kernels_have_room_where_a_thread_has_128_kib() -> None:
    ended = subprocess.run([sys.executable, "-c", STACKS], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    others, ahead = ended.stdout.splitlines()
    assert others == f"128 {system.KERNEL_STACK >> 10} 128"
    assert ahead.split()[1] == str(system.KERNEL_STACK >> 10)


# Whole systems.


def elsewhere(kind: str, folder: Path) -> list[str]:
    """What is written on a system of this kind: whether a second writer is refused, then files with their digests."""
    folder.mkdir()
    program = ROOT / "tests" / "crash" / "elsewhere.py"
    ended = subprocess.run(
        [sys.executable, str(program), kind, str(folder)], capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.splitlines()


def test_other_systems_write_and_read_the_same_bytes(tmp_path: Path) -> None:
    refused, *files = elsewhere("here", tmp_path / "here")
    assert refused == "trace: another writer is at work"
    assert len(files) > 20
    assert elsewhere("windows", tmp_path / "windows") == [refused, *files]
    assert elsewhere("lacking", tmp_path / "lacking") == ["two writers", *files]  # nothing to lock with

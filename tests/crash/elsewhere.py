"""The same files on another system: ``python tests/crash/elsewhere.py here|lacking|windows FOLDER``.

Everything that is written here is written again where the system lacks calls, or behaves as Windows does; prints the
digest of each file. It stands in a process of its own, since the system is changed before the package is imported.
"""

import builtins
import errno
import io
import os
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba  # noqa: F401  all that others import is imported before the system is changed
import numpy as np
import rich.console  # noqa: F401

LACKING = ("pread", "preadv", "writev", "register_at_fork", "sched_getaffinity", "link")
FLAGS = ("O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK")
BINARY = 1 << 30


def lack() -> None:
    """A system without these names."""
    for name in (*LACKING[:-1], *FLAGS):
        delattr(os, name)
    sys.modules["fcntl"] = None  # type: ignore[assignment]


class Windows:
    """What Windows does otherwise, as far as files go."""

    def __init__(self) -> None:
        import fcntl

        self.flock, self.locked = fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB
        self.real = {n: getattr(os, n) for n in ("open", "read", "write", "fsync", "replace", "rename", "unlink")}
        self.text: dict[int, bool] = {}

    def take_over(self) -> None:
        """Change the system."""
        lack()
        os.O_BINARY = BINARY  # type: ignore[attr-defined]
        for name in self.real:
            setattr(os, name, getattr(self, name))
        os.remove = os.unlink
        sys.modules["msvcrt"] = SimpleNamespace(locking=self.locking, LK_NBLCK=2)  # type: ignore[assignment]
        found = find_spec("dgrr.base.system")
        assert found is not None
        assert found.loader is not None
        sys.modules["dgrr.base.system"] = system = module_from_spec(found)
        os.name = "nt"  # while it is imported: it looks at the name
        found.loader.exec_module(system)
        os.name = "posix"
        sys.modules["dgrr"].system = system  # type: ignore[attr-defined]

    def open(self, path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        """No folders; text unless told otherwise."""
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        descriptor: int = self.real["open"](path, flags & ~BINARY, mode, **more)
        self.text[descriptor] = not flags & BINARY
        return descriptor

    def read(self, descriptor: int, length: int) -> bytes:
        """Text ends at ^Z."""
        data: bytes = self.real["read"](descriptor, length)
        return data.replace(b"\r\n", b"\n").split(b"\x1a")[0] if self.text.get(descriptor) else data

    def write(self, descriptor: int, data: Any) -> int:
        """Lines of text end in two characters."""
        if self.text.get(descriptor):
            self.real["write"](descriptor, bytes(data).replace(b"\n", b"\r\n"))
            return len(data)
        written: int = self.real["write"](descriptor, data)
        return written

    def fsync(self, descriptor: int) -> None:
        """Of files that are open for writing alone."""
        flags = int(Path(f"/proc/self/fdinfo/{descriptor}").read_text().split("flags:")[1].split()[0], 8)
        if not flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self.real["fsync"](descriptor)

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        """A byte of a file."""
        try:
            self.flock(descriptor, self.locked)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None

    def _require_closed(self, *paths: Any) -> None:
        for path in map(os.path.realpath, paths):
            for entry in os.listdir("/proc/self/fd"):
                if os.path.realpath(f"/proc/self/fd/{entry}") == path:
                    raise PermissionError(errno.EACCES, "another process uses the file", path)

    def replace(self, source: Any, target: Any, **more: Any) -> None:
        """Of files that nobody has open."""
        self._require_closed(source, target)
        self.real["replace"](source, target)

    def rename(self, source: Any, target: Any, **more: Any) -> None:
        """Not in the place of another file."""
        if os.path.exists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        self.replace(source, target)

    def unlink(self, path: Any, **more: Any) -> None:
        """Of files that nobody has open."""
        self._require_closed(path)
        self.real["unlink"](path)


def files(folder: Path) -> Iterator[tuple[str, str]]:
    """Each file with its digest."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.name, sha256(path.read_bytes()).hexdigest()


def do_all(folder: Path) -> None:
    """Write, read, seal, resume, recover, roll back, and all else that has files."""
    import runs
    import scenarios

    from dgrr.tape import Tensor, ops, set_threads
    from dgrr.tape.numerics.engine import launch
    from dgrr.trace import TraceWriteError, open_trace, recover, validate
    from dgrr.trace.v1.reader import TraceReaderV1

    os.urandom = lambda count: bytes(count)
    time.time_ns = lambda: 7
    whole = folder / "whole"
    whole.mkdir()
    runs.record(whole / "t")
    scenarios.LINKS[:] = runs.links(whole / "t")
    for name, scenario in scenarios.SCENARIOS.items():
        own = folder / name
        own.mkdir()
        scenario.prepare(own)
        scenario.act(own)
        scenario.check(own, "")
    runs.unfinished(folder / "u", 2)
    with open_trace(folder / "u.partial") as reading:
        recovered = recover(folder / "u", folder / "u2")
        assert (len(reading), recovered.parts[0].steps) == (2, 2)
    recorder = runs.begin(folder / "l")
    try:
        runs.begin(folder / "l", overwrite=True)
    except TraceWriteError as error:
        print(str(error).split(" on ")[0])
    else:
        print("two writers")
    recorder.close()
    with runs.begin(folder / "v") as recorder:
        runs.step(recorder)
    scenarios.write_v1(folder)
    with TraceReaderV1(str(folder / "t")) as trace:
        trace.check_size()
    assert validate(folder / "v").ok
    launch.PARALLEL_WORK = 0
    set_threads(3)
    x = Tensor(np.ones((64, 64), np.float32))
    assert (ops.matmul(x, x).numpy() == 64).all()


def main() -> None:
    """The command."""
    kind, folder = sys.argv[1], Path(sys.argv[2])
    if kind == "lacking":
        lack()
    if kind == "windows":
        Windows().take_over()
    do_all(folder)
    assert builtins.open is io.open
    for name, digest in files(folder):
        print(name, digest)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()

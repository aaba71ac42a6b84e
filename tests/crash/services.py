"""Services of `dgrr.base.system` that fail, or are written down."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from dgrr.base import system

NAMED = ("open_descriptor", "new_file", "replace", "remove", "link")
"""Services that take a path, which their errors name."""

NAMES = (*NAMED, "close", "pread", "pread_into", "write", "seek", "truncate", "fsync", "lock")

Hook = Callable[..., Any]
"""Called in the place of a service: its name, the service, its arguments."""


class _File(io.FileIO):
    """A file whose writes and whose end are services too."""

    def __init__(self, path: system.FilePath, hook: Hook) -> None:
        super().__init__(path, "w+b")
        self._hook = hook

    def write(self, data: Any) -> int:
        written: int = self._hook("write", system_of["write"], self.fileno(), [data])
        return written

    def close(self) -> None:
        if not self.closed:
            descriptor = os.dup(self.fileno())
            super().close()
            self._hook("close", system_of["close"], descriptor)


system_of: dict[str, Callable[..., Any]] = {name: getattr(system, name) for name in NAMES}


@contextmanager
def hooked(hook: Hook) -> Iterator[None]:
    """Have every call of a service go through the hook."""
    made: dict[str, Callable[..., Any]] = dict(system_of, new_file=lambda path: io.BufferedRandom(_File(path, hook)))
    for name in NAMES:
        setattr(system, name, partial(hook, name, made[name]))
    try:
        yield
    finally:
        for name, service in system_of.items():
            setattr(system, name, service)


class Fault:
    """A hook that lets calls fail: that of a number, or it and all that follow (`for_good`).

    Args:
        number: 0, 1, 2, …; -1: none, to count them.
        kind: the name of an error, such as EIO; "short": half of the bytes are read or written; "torn": half of them
            are written, then ENOSPC.
    """

    def __init__(self, number: int, kind: str, code: int, *, for_good: bool = False) -> None:
        self.number, self.kind, self.code, self.for_good = number, kind, code, for_good
        self.names: list[str] = []

    def __call__(self, name: str, service: Callable[..., Any], *args: Any) -> Any:
        number = len(self.names)
        self.names.append(name)
        if not (number == self.number or (self.for_good and 0 <= self.number <= number)):
            return service(*args)
        if self.kind in ("short", "torn"):
            half = _half(name, service, *args)
            if self.kind == "short" or half is None:
                return service(*args) if half is None else half
        if name == "close":
            service(*args)  # the descriptor is gone, whatever the system says
        raise OSError(self.code, os.strerror(self.code), *map(os.fspath, args[:1] if name in NAMED else ()))


def _half(name: str, service: Callable[..., Any], *args: Any) -> Any:
    """Do half of what is asked; None where there are no halves."""
    if name == "write":
        descriptor, buffers = args
        first = memoryview(buffers[0]).cast("B")
        return service(descriptor, [first[: len(first) // 2 or 1]])
    if name == "pread_into" and len(args[1]) > 1:
        descriptor, buffer, offset = args
        return service(descriptor, buffer[: len(buffer) // 2], offset)
    return None

"""Compiling side by side: what has to be compiled is known before a step runs, and LLVM compiles one at a time.

So forked processes compile, each a part, and leave the machine code in the folder of kernels; this process loads it
from there. Where forking is not safe, or the folder cannot be written, it compiles one after the other itself.
"""

import os
import select
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from ....base import kernel_cache
from .compile_notice import Told, compile_notice
from .numba_compiler import COMPILING
from .threads import THREADS

PATIENCE = 120.0
"""Seconds without anything compiled after which the processes are given up: the largest kernel takes about six."""

FORKING = (DeprecationWarning, RuntimeWarning)
"""What Python and JAX warn with of a fork beside threads: a child here only compiles, and takes none of their locks."""


class Task(NamedTuple):
    """Something to compile: its name for people, and what leaves its machine code in the folder of kernels."""

    name: str
    compile: Callable[[], object]


def compile_side_by_side(tasks: Sequence[Task], what: str = "kernels") -> None:
    """Have all of these compiled, in one process per thread where that can be, and say so on a terminal.

    What fails in a process is left to whoever needs it, and fails again there, with its error.
    """
    if not tasks:
        return
    workers = min(THREADS.count, len(tasks))
    with compile_notice(f"{len(tasks)} {what}", len(tasks)) as told:
        if workers > 1 and sys.platform.startswith("linux") and kernel_cache.can_be_written():
            _forked(tasks, workers, told)
        else:
            for task in tasks:
                task.compile()
                told(task.name)


def _forked(tasks: Sequence[Task], workers: int, told: Told) -> None:
    """Fork, and wait until every process has ended. They take the next task from one pipe and name it in another."""
    todo, done = os.pipe(), os.pipe()
    os.write(todo[1], b"".join(i.to_bytes(2, "big") for i in range(len(tasks))))
    os.close(todo[1])
    children = list[int]()
    try:
        # A child inherits the lock of numba's compiler as its own; held by another thread it would never open.
        with COMPILING, warnings.catch_warnings(), suppress(OSError):
            for kind in FORKING:
                warnings.simplefilter("ignore", kind)
            for _ in range(workers):
                children.append(_child(tasks, todo[0], done[1]))
        os.close(done[1])
        while select.select([done[0]], [], [], PATIENCE)[0] and (claim := os.read(done[0], 2)):
            told(tasks[int.from_bytes(claim, "big")].name)
    finally:
        for end in (todo[0], done[0]):
            os.close(end)
        for child in children:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _child(tasks: Sequence[Task], todo: int, done: int) -> int:
    """Fork a process that compiles until nothing is left; its id."""
    child = os.fork()
    if child:
        return child
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
        while claim := os.read(todo, 2):
            with suppress(Exception):
                tasks[int.from_bytes(claim, "big")].compile()
            os.write(done, claim)
    finally:
        os._exit(0)

"""Ctrl-C of the program `dgrr`: an exit code and a line at any moment, and never a traceback.

This module loads nothing but what Python has: the program arms it before anything else is loaded.
"""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread
from typing import Any

INTERRUPTED = 130
"""The exit code, as shells count it: 128 and the number of the signal."""


def end(*_: object) -> None:
    """End the process at once; what has just been written to a file stays as a kill would leave it."""
    with suppress(OSError):
        os.write(2, b"dgrr: interrupted\n")
    os._exit(INTERRUPTED)


def arm() -> None:
    """Let Ctrl-C `end` the process, unless whoever started it wants that ignored, as a shell does in the background.

    An import that is cut short by an exception may hide it, or make another of it: nothing is raised there.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)
    before = sys.unraisablehook

    def unraisable(lost: Any) -> None:
        """Of a KeyboardInterrupt that came in a finalizer Python would print a traceback, and go on."""
        if lost.exc_type is KeyboardInterrupt:
            end()
        before(lost)

    sys.unraisablehook = unraisable


def disarm() -> None:
    """Let Ctrl-C, which is too late now, do nothing: Python would die of it while it takes itself down."""
    if signal.getsignal(signal.SIGINT) is end:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def interruptible() -> Generator[None]:
    """Let Ctrl-C raise KeyboardInterrupt in an armed program, once: another one ends it.

    Where the block makes another error of it, as an import in C may, it is a KeyboardInterrupt again.
    """
    came = False

    def interrupt(*_: object) -> None:
        nonlocal came
        came = True
        signal.signal(signal.SIGINT, end)
        raise KeyboardInterrupt

    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not end:
        yield
        return
    try:
        signal.signal(signal.SIGINT, interrupt)
        yield
    except BaseException:
        if came:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, end)

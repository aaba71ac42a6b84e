"""Ctrl-C while kernels are compiled or loaded: held until that is done, and then delivered.

LLVM calls back into Python to fetch machine code. An exception in such a call, as Ctrl-C raises, cannot pass through
LLVM: it is printed and dropped, and the program goes on. numba tells whoever listens when it takes and leaves the lock
under which all that happens; so nothing that compiles has to think of it.
"""

# numba carries no types.
# pyright: basic
import signal
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

from numba.core import event


class _Hold(event.Listener):
    """Counts the interrupts between the outermost taking and leaving of the compiler's lock in the main thread."""

    def __init__(self) -> None:
        self._depth = self._came = 0
        self._previous: Any = None

    def on_start(self, event: object) -> None:
        if current_thread() is not main_thread():
            return  # Python delivers signals to the main thread alone
        handler = signal.getsignal(signal.SIGINT)
        if self._depth == 0 and callable(handler):  # else it is ignored, or ends the process without Python
            self._came, self._previous = 0, handler
            signal.signal(signal.SIGINT, self._count)
        self._depth += 1  # last: an interrupt that comes before it is held keeps the lock from being taken

    def on_end(self, event: object) -> None:
        if current_thread() is not main_thread():
            return
        self._depth -= 1
        if self._depth == 0 and self._previous is not None:
            previous, self._previous = self._previous, None
            signal.signal(signal.SIGINT, previous)
            for _ in range(self._came):
                signal.raise_signal(signal.SIGINT)

    def _count(self, number: int, frame: FrameType | None) -> None:
        self._came += 1


def hold_while_compiling() -> None:
    """From now on, hold Ctrl-C back while the main thread compiles or loads kernels."""
    event.register("numba:compiler_lock", _Hold())

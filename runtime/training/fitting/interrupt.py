"""Ctrl-C between two steps: the signal is held back until the step in progress is whole."""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Any


@contextmanager
def held_interrupt() -> Generator[Callable[[], None]]:
    """Hold SIGINT back; the yielded function, called between steps, raises KeyboardInterrupt if one came.

    So does the end of the block, so that none is lost. A second SIGINT is not held: it interrupts at once.
    Outside the main thread nothing is held, because Python delivers signals to the main thread alone; nor
    where SIGINT is ignored or left to the system, as in a job that a shell runs in the background.
    """
    came = False

    def hold(number: int, frame: FrameType | None) -> Any:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True

    def check() -> None:
        if came:
            raise KeyboardInterrupt

    if current_thread() is not main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        yield check
        return
    previous = signal.signal(signal.SIGINT, hold)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, previous)
    check()

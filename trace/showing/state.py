"""In which state the file of a run is: finished, still written, left behind, or damaged."""

from typing import Literal

from ...base import system
from ..file_version import TraceFileError, open_regular
from ..v2.format.constants import PARTIAL_SUFFIX
from ..v2.read.reader import TraceReader
from ..v2.verdict import Verdict

State = Literal["sealed", "running", "unfinished", "damaged"]


def state_of(trace: TraceReader) -> State:
    """The state of an open trace; one that a writer holds may end within a frame."""
    if trace.sealed:
        return "sealed" if trace.damage is None else "damaged"
    torn = trace.damage is None or trace.damage.verdict is Verdict.TORN_TAIL
    if torn and is_written(trace.path):
        return "running"
    return "unfinished" if trace.damage is None else "damaged"


def is_written(path: str) -> bool:
    """Whether a writer holds the lock of an unfinished trace.

    The lock is asked for and given back at once. Where a system has no locks, nobody is known to hold one.
    """
    if not path.endswith(PARTIAL_SUFFIX):
        return False
    try:
        descriptor = open_regular(path)
    except TraceFileError:  # it has got its name since
        return False
    try:
        system.lock(descriptor)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        system.release(descriptor)
    return False

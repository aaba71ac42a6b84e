"""Ctrl-C within a call that makes others for long: it looks whether one came, which compiled code cannot feel."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false
import numpy as np
from numba import njit

from ....base.system import addresses_of_interrupts
from ..engine.atomics import call_with, call_without_arguments
from ..engine.intrinsics import word
from .places import address_of

INTERRUPTED = -1
"""The status of a call that Ctrl-C has ended."""

LOOK_WORK = 1 << 25
"""Arithmetic operations between two looks, which take up to 30 ms: a look waits for whatever else Python does."""

CALL_WORK = 1 << 8
"""What a call takes beside its own."""

_ADDRESSES = np.array(addresses_of_interrupts(), np.int64)

LOOKING: int = address_of(_ADDRESSES)
"""What `came` takes."""


@njit(inline="always")
def came(looking):
    """Whether Ctrl-C came, if this is the thread that Python would tell of it."""
    held = call_without_arguments(word(looking, 0))
    found = call_without_arguments(word(looking, 1))
    call_with(word(looking, 2), held)
    return found != 0

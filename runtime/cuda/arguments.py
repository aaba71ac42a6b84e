"""What a kernel written in CUDA C++ is called with, as its sources have it."""

import ctypes
from collections.abc import Sequence
from typing import Self

from ...tape.numerics.cuda.written import Launch


class CallArguments(ctypes.Structure):
    """What a written kernel is given: addresses and numbers."""

    _fields_ = (("pointers", ctypes.c_uint64 * 8), ("words", ctypes.c_int64 * 24))

    @classmethod
    def of(cls, launch: Launch, places: Sequence[int]) -> Self:
        """Those of a launch; ``places`` are the addresses of the table, the words and the scratch."""
        made = cls()
        made.pointers[: len(launch.pointers)] = [places[k] for k in launch.pointers]
        made.words[: len(launch.words)] = list(launch.words)
        return made


class Told(ctypes.Structure):
    """Where a written kernel says that it failed, and the number by which it says so."""

    _fields_ = (("word", ctypes.c_uint64), ("op", ctypes.c_uint64))

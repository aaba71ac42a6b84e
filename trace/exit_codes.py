"""The exit codes of the command line, shared by both versions of the format."""

from enum import IntEnum
from typing import Self

from ..base.interruption import INTERRUPTED as CTRL_C


class Exit(IntEnum):
    """What a command answers to the shell; ``word`` is its verdict where it has none of its own, ``about`` for people.

    Where a file breaks several rules, the first in file order decides.
    """

    _value_: int
    word: str
    about: str

    def __new__(cls, code: int, word: str = "", about: str = "") -> Self:
        """Make a member; called with its code alone, an enum gives the member that there is."""
        made = int.__new__(cls, code)
        made._value_, made.word, made.about = code, word, about
        return made

    OK = 0, "ok", "success"
    USAGE = 1, "usage", "the command line is wrong; nothing was touched"
    IO = 2, "io", "a file, or the answer, cannot be opened, read or written"
    VALIDATION = 3, "corrupt", "not a valid trace"
    DIVERGED = 4, "diverged", "two traces differ, or training met a value that is not finite"
    REPLAY = 5, "update", "a replay failed, or a check of a step or of the demo"
    UNPROVEN = 6, "unproven", "nothing is wrong, but not everything could be proven"
    LOSSY = 7, "lossy", "a recovery had to leave something out"
    DRIFT = 8, "drift", "two traces differ, but only as another machine or library makes them differ"
    SKIPPED = 125, "", "bisect --git cannot tell, so git skips the commit"
    INTERRUPTED = CTRL_C, "interrupted", "interrupted"

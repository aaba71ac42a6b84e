"""What resumed runs cut off from a trace, kept beside it: never read by itself, and repair may take from it."""

import os
import re
from itertools import chain, count, takewhile
from typing import NamedTuple

from ....base.system import FilePath

_SUFFIX = ".torn"


class Tails(NamedTuple):
    """What resumed runs cut off from a trace, a file for each time: those that are `there`, the oldest first."""

    there: list[str]
    next: str
    """The name that the next one gets."""


def torn_files(path: FilePath) -> Tails:
    """`PATH.torn`, `PATH.torn.1` and so on, as far as there are such files."""
    torn = f"{os.fspath(path)}{_SUFFIX}"
    there = list(takewhile(os.path.isfile, chain([torn], (f"{torn}.{number}" for number in count(1)))))
    return Tails(there, f"{torn}.{len(there)}" if there else torn)


def is_torn(name: FilePath) -> bool:
    """Whether a file is, by its name, what a resumed run cut off."""
    return re.search(rf"{re.escape(_SUFFIX)}(\.\d+)?$", os.fspath(name)) is not None

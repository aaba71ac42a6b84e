"""Where in the user's program a node was made: the first line outside this package."""

import dis
import linecache
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, cast

CodePosition = tuple[CodeType, int]
"""A code object and the offset of an instruction in it: cheap to note, read only when someone asks."""

WINGS = tuple(str(Path(__file__).parents[1] / wing) + os.sep for wing in ("tape", "runtime", "trace"))
"""The folders of this package's source."""

PROGRAM = str(Path(__file__).parents[1] / "__main__.py")
"""The program ``dgrr``: behind it stands no line of a user's."""


class _Inside(dict[str, bool]):
    """Whether a source file is one of this package, by its name."""

    def __missing__(self, file: str) -> bool:
        inside = self[file] = file.startswith(WINGS)
        return inside


_INSIDE = _Inside()


@dataclass(frozen=True)
class Location:
    """A line of a program: ``text`` is empty if there is no source to read."""

    file: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        """``train.py:12: loss = x.log()``, with the path as seen from the working directory.

        In a notebook ``Cell In[5], line 3: loss = x.log()``, as tracebacks say it there.
        """
        cell = _cell(self.file)
        shown = f"{self.file.removeprefix(os.path.join(Path.cwd(), ''))}:" if cell is None else f"{cell}, line "
        return f"{shown}{self.line}{': ' if self.text else ''}{self.text}"

    @classmethod
    def of(cls, place: CodePosition) -> "Location":
        """The location of a place."""
        code, offset = place
        lines = (line for start, stop, line in code.co_lines() if start <= offset < stop and line is not None)
        line = next(lines, code.co_firstlineno)
        text = linecache.getline(code.co_filename, line).strip()
        return cls(code.co_filename, line, code.co_qualname, text)


def assigned(place: CodePosition) -> str | None:
    """The variable that takes what an instruction gives at once: ``h`` of ``h = ops.relu(x)``; None for none.

    >>> from dgrr.tape import Tape
    >>> tape = Tape()
    >>> h = tape.const(1.0).exp()
    >>> assigned(tape.node(h).place)
    'h'
    """
    code, offset = place
    behind = (one for one in dis.get_instructions(code) if one.offset > offset and one.opname != "COPY")
    taking = next(behind, None)
    if taking is None or not taking.opname.startswith(("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")):
        return None
    argument: Any = taking.argval
    name: Any = cast(Any, argument)[0] if isinstance(argument, tuple) else argument
    return str(name)  # two in one instruction, from Python 3.13 on


def _cell(file: str) -> str | None:
    """``Cell In[5]``, where the name of a file is IPython's own for the code of a cell."""
    find = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if find is None else find()
    named = None if shell is None else shell.compile.format_code_name(file)
    return None if named is None else " ".join(named)


def caller() -> CodePosition | None:
    """The place in the first frame outside this package, for a function two calls inside it.

    Called for every op, so it only walks, and makes no frame objects of the frames between: 0.2 us below an op called
    through its public function.
    """
    frame: FrameType | None = sys._getframe(3)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and _INSIDE[frame.f_code.co_filename]:
        frame = frame.f_back
    return None if frame is None or frame.f_code.co_filename == PROGRAM else (frame.f_code, frame.f_lasti)

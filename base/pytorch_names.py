"""PyTorch's names and ours, the rows of ``pytorch_names.txt``, and what is said of a name that is missing."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, NoReturn

from .errors import MissingAttributeError
from .suggest import did_you_mean

FILE = Path(__file__).with_suffix(".txt")


class Row(NamedTuple):
    """A name of PyTorch, and what stands for it here.

    ``here`` is a name, an expression to write, or empty where the note says what to do instead.
    """

    module: str
    name: str
    here: str
    note: str

    @property
    def is_name(self) -> bool:
        """Whether it has a name here, and no expression."""
        return re.fullmatch(r"[\w.]+", self.here) is not None

    def __str__(self) -> str:
        verb = "it is " if self.is_name else "write " if self.here else ""
        return ", ".join(part for part in (f"{verb}{self.here}", self.note) if part)


class Section(NamedTuple):
    """A module of PyTorch."""

    module: str
    home: str
    title: str
    rows: tuple[Row, ...]


@cache
def sections() -> tuple[Section, ...]:
    """All of the table."""
    _, *parts = re.split(r"^== ", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return tuple(_section(part) for part in parts)


def _section(text: str) -> Section:
    head, *lines = text.strip().split("\n")
    module, home, title = head.split(" | ")
    return Section(module, home, title, tuple(row for line in lines for row in _rows(module, home, line)))


def _rows(module: str, home: str, line: str) -> Iterator[Row]:
    """The rows of a line: one for each of its names."""
    names, here, note = [part.strip() for part in [*line.split("|", 2), ""][:3]]
    for name in names.split():
        same = name if home == "-" else f"{home}.{name}"
        yield Row(module, name, same if here == "=" else here, note)


def row_of(name: str, home: str) -> Row | None:
    """The row of a name whose module is at home there; the first, if there are several."""
    return next(
        (row for section in sections() if section.home == home for row in section.rows if row.name == name), None
    )


def row_anywhere(name: str, home: str) -> Row | None:
    """The same, or else that of another module; none of a tensor's methods."""
    homes = dict.fromkeys([home, *(section.home for section in sections() if section.home != "x")])
    return next((row for each in homes if (row := row_of(name, each))), None)


def refuse_names(module: str, known: Iterable[str]) -> Callable[[str], NoReturn]:
    """The ``__getattr__`` of a module: MissingAttributeError with the name that may be meant.

    >>> refuse_names("dgrr.tape.nn", ["Linear", "Tanh"])("Liner")
    Traceback (most recent call last):
    dgrr.base.errors.MissingAttributeError: dgrr.tape.nn has no 'Liner'; did you mean nn.Linear?
    """

    def refuse(name: str) -> NoReturn:
        advice = "" if name.startswith("_") else _advice(name, module.rpartition(".")[2], known)
        raise MissingAttributeError(f"{module} has no {name!r}{advice}", name=name, obj=None)

    return refuse


def _advice(name: str, home: str, known: Iterable[str]) -> str:
    if row := row_anywhere(name, home):
        return f"; {row}"
    return did_you_mean(name, known, home + ".{}")

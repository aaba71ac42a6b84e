"""How things show themselves to people: text as wide as the terminal, and HTML that notebooks show.

The HTML has no colours of its own, so that it reads on light and on dark pages; whatever a user has named is escaped.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from io import StringIO
from os import get_terminal_size
from typing import TypeVar, overload

from rich.console import Console, RenderableType

T = TypeVar("T")

LIMIT = 40
"""Rows that a table shows where nobody asks for more."""

LAST = 10
"""How many of these are its last ones, where it has more than it shows."""

PLAIN_WIDTH = 160
"""Columns of text beyond which a printed table would wrap, where there is no terminal."""

_FRAME = "overflow-x:auto;max-width:100%"
_TABLE = '<table cellpadding="4" style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
_LEFT, _RIGHT = "text-align:left;vertical-align:top", "text-align:right;vertical-align:top"
_PRE = "margin:0.3em 0;line-height:1.25;white-space:pre;overflow-x:auto"


# ------------------------------------------------------------------ rows


def shown_rows(count: int, limit: int | None = LIMIT) -> tuple[range, range]:
    """Which of so many rows are shown: the first ones and the last ones; all of them if there are few.

    >>> shown_rows(2000)
    (range(0, 30), range(1990, 2000))
    >>> shown_rows(3)
    (range(0, 3), range(3, 3))
    """
    if limit is None or count <= limit:
        return range(count), range(count, count)
    last = min(LAST, limit // 4)
    return range(limit - last), range(count - last, count)


class LateRows(Sequence[T]):
    """Rows that are made when they are asked for: a table of many, of which few are shown, is not made whole.

    >>> rows = LateRows(range(2000), lambda n: n * n)
    >>> len(rows), rows[1999]
    (2000, 3996001)
    """

    def __init__(self, keys: Sequence[int], make: Callable[[int], T]) -> None:
        self._keys, self._make = keys, make

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> "LateRows[T]": ...
    def __getitem__(self, index: int | slice) -> "T | LateRows[T]":
        if isinstance(index, slice):
            return LateRows(self._keys[index], self._make)
        return self._make(self._keys[index])


def more(count: int) -> str:
    """What stands for rows that are not shown: ``… 1,960 more``."""
    return f"{'…' if _can_show('…') else '...'} {count:,} more"


def counted(count: int, what: str, plural: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "step"), counted(1200, "step"), counted(2, "loss", "losses")
    ('1 step', '1,200 steps', '2 losses')
    """
    return f"{count:,} {what if count == 1 else plural or f'{what}s'}"


def size(count: int) -> str:
    """A number of bytes as people read it.

    >>> size(12), size(48_679_096)
    ('12 bytes', '48.7 MB')
    """
    if count < 1000:
        return counted(count, "byte")
    value, unit = count / 1000, "kB"
    for unit in ("kB", "MB", "GB", "TB"):
        if value < 999.95 or unit == "TB":
            break
        value /= 1000
    return f"{value:.1f} {unit}"


def listed(title: str, rows: Mapping[str, object]) -> str:
    """Lines of a title and of facts below it.

    >>> print(listed("a run", {"steps": 3, "last loss": 0.5}))
    a run
      steps      3
      last loss  0.5
    """
    width = max(map(len, rows), default=0)
    return "\n".join([title, *(f"  {name:<{width}}  {value}".rstrip() for name, value in rows.items())])


# ------------------------------------------------------------------ a terminal


class _Text(StringIO):
    """A text that rich writes in the characters that standard output can show."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return _encoding()


def rendered(what: RenderableType, width: int | None = None) -> str:
    """What rich draws, as plain text; as wide as the terminal, or `PLAIN_WIDTH` where there is none."""
    out = _Text()
    Console(file=out, width=width or text_width(), color_system=None).print(what)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip("\n").split("\n"))


def text_width() -> int:
    """The columns of the terminal that standard output is; `PLAIN_WIDTH` if it is none."""
    try:
        return get_terminal_size(sys.stdout.fileno()).columns or PLAIN_WIDTH
    except (OSError, ValueError, AttributeError):  # a file, or what has no descriptor
        return PLAIN_WIDTH


def characters(good: str, plain: str) -> str:
    """``good`` where standard output can show these characters, else ``plain``."""
    return good if _can_show(good) else plain


def _can_show(text: str) -> bool:
    try:
        text.encode(_encoding())
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


# ------------------------------------------------------------------ a notebook


class Described(ABC):
    """What shows itself by a title and some facts: printed, in a line where it is one of several, and in a notebook."""

    __slots__ = ()

    @abstractmethod
    def _title(self) -> str:
        """A few words."""

    @abstractmethod
    def about(self) -> Mapping[str, object]:
        """What is to be said to people, by name."""

    def __repr__(self) -> str:
        return f"<{self._title()}>"

    def __str__(self) -> str:
        return listed(self._title(), self.about())

    def _repr_html_(self) -> str:
        return panel(self._title(), facts(self.about()))


class Printed:
    """What a notebook shows as the text that it prints."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return panel("", text(str(self)))


def panel(title: str, *parts: str) -> str:
    """HTML of something: its title, and below it what `facts`, `grid`, `text` and `folded` give.

    >>> panel("a < b", facts({"steps": 3}))[:68]
    '<div style="overflow-x:auto;max-width:100%"><strong>a &lt; b</strong'
    """
    head = f"<strong>{escape(title)}</strong>" if title else ""
    return f'<div style="{_FRAME}">{head}{"".join(parts)}</div>'


def facts(rows: Mapping[str, object]) -> str:
    """HTML of names and what they are, one below the other."""
    lines = (
        f'<tr><th scope="row" style="{_LEFT}">{escape(name)}</th><td style="{_LEFT}">{escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    return f"{_TABLE}<tbody>{''.join(lines)}</tbody></table>"


def grid(
    columns: Sequence[str], first: Iterable[Sequence[str]], last: Iterable[Sequence[str]] = (), skipped: int = 0
) -> str:
    """HTML of a table of cells; between its first and its last rows those that are not shown are counted."""
    head = "".join(f'<th scope="col" style="{_LEFT}">{escape(name)}</th>' for name in columns)
    gap = f'<tr><td colspan="{len(columns)}" style="{_LEFT}">{escape(more(skipped))}</td></tr>' if skipped else ""
    body = "".join([*map(_row, first), gap, *map(_row, last)])
    return f"{_TABLE}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def text(content: str) -> str:
    """HTML of lines as they are."""
    return f'<pre style="{_PRE}">{escape(content)}</pre>'


def folded(title: str, part: str) -> str:
    """HTML of what is shown when somebody asks for it."""
    return f"<details><summary>{escape(title)}</summary>{part}</details>"


def _row(cells: Sequence[str]) -> str:
    shown = (f'<td style="{_RIGHT if _is_number(cell) else _LEFT}">{escape(cell)}</td>' for cell in cells)
    return f"<tr>{''.join(shown)}</tr>"


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "").rstrip("%"))
    except ValueError:
        return cell == "-"
    return True

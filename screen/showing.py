"""What people read in a terminal: numbers with their nouns, and tables of which the first and last rows are shown."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from io import StringIO
from numbers import Real
from os import get_terminal_size
from typing import Any, TypeVar, overload

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ..base.printed import aligned

T = TypeVar("T")

LIMIT = 40
"""Rows that a table shows where nobody asks for more."""

LAST = 10
"""How many of these are its last ones, where it has more than it shows."""

PLAIN_WIDTH = 160
"""Columns of text beyond which a printed table would wrap, where there is no terminal."""


def has_bar(console: Console) -> bool:
    """Whether a bar can be drawn and drawn again: a notebook needs ipywidgets for that, and rich warns without."""
    return find_spec("ipywidgets") is not None if console.is_jupyter else console.is_terminal


# ------------------------------------------------------------------ rows


def rate(steps: float, seconds: float) -> str:
    """Steps per second, as people read it.

    >>> rate(2000, 1.0), rate(1, 3.0)
    ('2,000 steps/s', '0.33 steps/s')
    """
    speed = steps / seconds if seconds > 0 else 0.0
    return f"{speed:,.0f} steps/s" if speed >= 10 else f"{speed:.2g} steps/s"


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


def cell(value: object) -> str:
    """A cell of a table: floats with four digits, None as a dash."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


Rows = Sequence[Sequence[object]]
"""Of each row a value for every column."""


def drawn(title: str, columns: Sequence[str], first: Rows, last: Rows = (), skipped: int = 0) -> Table:
    """A table for a rich console; between its first and its last rows those that are not shown are counted."""
    table = Table(title=Text(title) if title else None, title_justify="left", caption_justify="left")
    if skipped:
        table.caption = Text(more(skipped))
        table.min_width = len(more(skipped))
    for column, numbers in zip(columns, are_numbers(len(columns), first, last), strict=True):
        table.add_column(Text(column), justify="right" if numbers else "left", no_wrap=numbers, overflow="fold")
    gap = [[characters("⋮", ":")] * len(columns)] if skipped else []
    for row in (*first, *gap, *last):
        table.add_row(*(Text(cell(value)) for value in row))
    return table


def are_numbers(columns: int, first: Rows, last: Rows) -> list[bool]:
    """Which columns have nothing but numbers; these stand to the right."""
    return [all(isinstance(row[i], Real | None) for row in (*first, *last)) for i in range(columns)]


def listed(title: str, rows: Mapping[str, object]) -> str:
    """Lines of a title and of facts below it.

    >>> print(listed("a run", {"steps": 3, "last loss": 0.5}))
    a run
      steps      3
      last loss  0.5
    """
    return "\n".join([title, aligned(rows.items())] if rows else [title])


# ------------------------------------------------------------------ a terminal


class _Text(StringIO):
    """A text that rich writes in the characters that standard output can show."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return _encoding()


def rendered(what: RenderableType, width: int | None = None) -> str:
    """What rich draws, as plain text; as wide as the terminal, or `PLAIN_WIDTH` where there is none."""
    text = _written(what, width or text_width(), color_system=None)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def styled(what: RenderableType) -> str:
    """The same, bold and coloured where standard output is a terminal that has that."""
    return _written(what, text_width(), force_terminal=True) if sys.stdout.isatty() else rendered(what)


def _written(what: RenderableType, width: int, **options: Any) -> str:
    """What a console writes; in a notebook too, where rich would else show it and write nothing."""
    out = _Text()
    console = Console(file=out, width=width, force_jupyter=False, **options)
    if (
        isinstance(what, Table)
        and console.measure(what, options=console.options.update_width(_ENDLESS)).maximum > width
    ):
        _narrow(what)
    console.print(what)
    return out.getvalue().rstrip("\n")


_ENDLESS = 1 << 20


def _narrow(table: Table) -> None:
    """Leave the lines and most spaces between columns to what stands in them."""
    table.box, table.show_edge, table.pad_edge, table.padding = SIMPLE_HEAD, False, False, (0, 1, 0, 0)


def facts_grid(rows: Mapping[str, object]) -> Table:
    """Names and what they are for a rich console, one below the other; what is too long goes on below."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(Text(name), value if isinstance(value, Text) else Text(str(value)))
    return table


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

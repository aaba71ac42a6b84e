"""How things show themselves in a notebook: HTML of a title and of facts, tables and text below it.

It has no colours of its own, so that it reads on light and on dark pages; whatever a user has named is escaped.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape

from .showing import Rows, are_numbers, cell, listed, more

_FRAME = "overflow-x:auto;max-width:100%"
_TABLE = '<table cellpadding="4" style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
_LEFT, _RIGHT = "text-align:left;vertical-align:top", "text-align:right;vertical-align:top"


class ShownAsPanel(ABC):
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
        f'<tr><th scope="row" style="{_LEFT}">{escape(name)}</th><td style="{_LEFT}">{_lines(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"{_TABLE}<tbody>{''.join(lines)}</tbody></table>"


def _lines(value: object) -> str:
    return escape(str(value)).replace("\n", "<br>")


def grid(columns: Sequence[str], first: Rows, last: Rows = (), skipped: int = 0) -> str:
    """HTML of the table that `drawn` draws."""
    sides = [_RIGHT if numbers else _LEFT for numbers in are_numbers(len(columns), first, last)]
    gap = f'<tr><td colspan="{len(columns)}" style="{_LEFT}">{escape(more(skipped))}</td></tr>' if skipped else ""
    body = "".join([*(_row(row, sides, "td") for row in first), gap, *(_row(row, sides, "td") for row in last)])
    return f"{_TABLE}<thead>{_row(columns, sides, 'th')}</thead><tbody>{body}</tbody></table>"


def folded(title: str, part: str) -> str:
    """HTML of what is shown when somebody asks for it."""
    return f"<details><summary>{escape(title)}</summary>{part}</details>"


def _row(values: Sequence[object], sides: Sequence[str], tag: str) -> str:
    cells = (f'<{tag} style="{side}">{escape(cell(x))}</{tag}>' for x, side in zip(values, sides, strict=True))
    return f"<tr>{''.join(cells)}</tr>"

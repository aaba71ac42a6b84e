"""How things show themselves in a notebook: HTML of a title and of facts, tables and text below it.

It has no colours of its own, so that it reads on light and on dark pages; whatever a user has named is escaped.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape

from ..base.printed import LEFT, TABLE, facts, panel
from .showing import Rows, are_numbers, cell, listed, more

_RIGHT = "text-align:right;vertical-align:top"


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


def grid(columns: Sequence[str], first: Rows, last: Rows = (), skipped: int = 0) -> str:
    """HTML of the table that `drawn` draws."""
    sides = [_RIGHT if numbers else LEFT for numbers in are_numbers(len(columns), first, last)]
    gap = f'<tr><td colspan="{len(columns)}" style="{LEFT}">{escape(more(skipped))}</td></tr>' if skipped else ""
    body = "".join([*(_row(row, sides, "td") for row in first), gap, *(_row(row, sides, "td") for row in last)])
    return f"{TABLE}<thead>{_row(columns, sides, 'th')}</thead><tbody>{body}</tbody></table>"


def folded(title: str, part: str) -> str:
    """HTML of what is shown when somebody asks for it."""
    return f"<details><summary>{escape(title)}</summary>{part}</details>"


def _row(values: Sequence[object], sides: Sequence[str], tag: str) -> str:
    cells = (f'<{tag} style="{side}">{escape(cell(x))}</{tag}>' for x, side in zip(values, sides, strict=True))
    return f"<tr>{''.join(cells)}</tr>"

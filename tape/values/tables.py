"""Tables of nodes and gradients: rows of plain values that print as text, or through rich on a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from io import StringIO
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ...arrays import Array
from ..errors import DomainError

PLAIN_WIDTH = 160
"""Columns of text beyond which a printed table would wrap."""


@dataclass(frozen=True)
class Table:
    """A titled table; ``rows`` are dicts with one entry per column."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def sorted(self, column: str, descending: bool = False) -> "Table":
        """The same rows by a column, those without an entry there last. Raises DomainError for another column.

        >>> [row["n"] for row in Table("", ("n",), [{"n": 2}, {"n": None}, {"n": 3}]).sorted("n", descending=True)]
        [3, 2, None]
        """
        if column not in self.columns:
            raise DomainError(f"table: argument 'sort': expected one of {', '.join(self.columns)}, got {column!r}")
        present = [row for row in self.rows if row[column] is not None]
        absent = [row for row in self.rows if row[column] is None]
        return replace(self, rows=[*sorted(present, key=lambda row: row[column], reverse=descending), *absent])

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dicts of one's own."""
        return [dict(row) for row in self.rows]

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame. Raises ModuleNotFoundError where pandas is not installed."""
        try:
            pandas = import_module("pandas")
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "Table.to_pandas: expected pandas to be installed: pip install pandas, or use to_dicts()", name="pandas"
            ) from None
        return pandas.DataFrame(self.to_dicts(), columns=list(self.columns))

    def __rich__(self) -> RichTable:
        """The table for a rich console."""
        table = RichTable(*self.columns, title=self.title or None)
        for row in self.rows:
            table.add_row(*(Text(show(row[column])) for column in self.columns))
        return table

    def __str__(self) -> str:
        out = StringIO()
        Console(file=out, width=PLAIN_WIDTH, color_system=None).print(self)
        return out.getvalue().rstrip("\n")


def show(value: Any) -> str:
    """A table cell: floats with four digits, None as a dash."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def statistics(array: Array) -> dict[str, Any]:
    """What a table says of an array: its 2-norm, least and greatest element, zeros, non-finite elements.

    For people to read: computed by numpy in float64, not part of the bit contract.
    """
    x = array.astype(np.float64)
    finite = x[np.isfinite(x)]
    empty = finite.size == 0
    largest = 0.0 if empty else float(np.abs(finite).max())
    scaled = finite / (largest or 1.0)  # squares neither overflow nor vanish
    return {
        "norm": largest * float(np.sqrt(np.sum(scaled * scaled))),
        "min": None if empty else float(finite.min()),
        "max": None if empty else float(finite.max()),
        "zeros": int(np.count_nonzero(x == 0)),
        "non-finite": int(x.size - finite.size),
    }

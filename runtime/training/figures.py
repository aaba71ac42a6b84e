"""A table of numbers: columns are arrays, and it prints."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt
from rich.table import Table as RichTable

from ...base.packages import package
from ...base.system import FilePath
from ...screen.showing import counted
from ...tape import DomainError
from ...tape.values.tables import PlainTable

Column = npt.NDArray[Any]

SHOWN = 20
"""Rows that a printed table has at most: the last ones."""


class Figures:
    """A table of numbers by column: ``figures["loss"]`` is an array with one number per row, NaN where there is none.

    It prints as a table of its last rows, on a rich console and in a notebook too.
    """

    def __init__(self, title: str, columns: Mapping[str, Column]) -> None:
        self._title, self._columns = title, dict(columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> Column:
        """One column. Raises DomainError for another name."""
        if name not in self._columns:
            raise DomainError(f"history: expected a column among {', '.join(self._columns)}, got {name!r}")
        return self._columns[name]

    def last(self) -> dict[str, float]:
        """The last row by column; no entries if there is none."""
        return {name: column[-1].item() for name, column in self._columns.items()} if len(self) else {}

    def to_pandas(self) -> Any:
        """A pandas DataFrame. Raises ModuleNotFoundError where pandas is not installed."""
        pandas = package("history.to_pandas", "pandas", instead=", or use columns, or to_csv")
        return pandas.DataFrame(self._columns)

    def to_csv(self, path: FilePath) -> None:
        """Write the table as comma-separated values, each number in full, nothing where there is none."""
        lines = [",".join(self._columns)]
        lines += [",".join("" if x != x else repr(x) for x in row) for row in self._rows(0)]
        Path(path).write_text("\n".join(lines) + "\n")

    def _rows(self, first: int) -> list[tuple[Any, ...]]:
        return list(zip(*(column[first:].tolist() for column in self._columns.values()), strict=True))

    def _shown(self) -> PlainTable:
        first, names = max(0, len(self) - SHOWN), self.columns
        title = self._title if not first else f"{self._title}, the last {SHOWN} of {len(self)}"
        rows = [{n: None if x != x else x for n, x in zip(names, row, strict=True)} for row in self._rows(first)]
        return PlainTable(title, names, rows)

    def __rich__(self) -> RichTable:
        return self._shown().__rich__()

    def __str__(self) -> str:
        return str(self._shown())

    def __repr__(self) -> str:
        return f"<{self._title}: {counted(len(self), 'row')} of {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self) -> str:
        """The last rows as a table in HTML."""
        return self._shown().to_html()

"""Tables of nodes and gradients: rows of plain values that print as text, or through rich on a terminal."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rich.table import Table as RichTable

from ...base.arrays import Array
from ...base.packages import package
from ...base.printed import panel
from ...screen.panels import grid
from ...screen.showing import LIMIT, drawn, rendered, shown_rows
from ..errors import DomainError


@dataclass(frozen=True, repr=False)
class PlainTable:
    """A titled table; ``rows`` are dicts with one entry per column.

    Printed, and in a notebook, it shows at most 40 of them, the first and the last; `to_string` shows all.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def sorted(self, column: str, descending: bool = False) -> "PlainTable":
        """The same rows by a column, those without an entry there last. Raises DomainError for another column.

        >>> [row["n"] for row in PlainTable("", ("n",), [{"n": 2}, {"n": None}, {"n": 3}]).sorted("n", descending=True)]
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
        pandas = package("PlainTable.to_pandas", "pandas", instead=", or use to_dicts()")
        return pandas.DataFrame(self.to_dicts(), columns=list(self.columns))

    def to_string(self, limit: int | None = None, width: int | None = None) -> str:
        """The table as text: all rows, or at most ``limit``, the first and the last.

        ``width`` is that of the text in columns; None stands for that of the terminal, or 160 where there is none.

        >>> print(PlainTable("", ("n",), [{"n": n} for n in range(9)]).to_string(limit=4))
        ┏━━━━━━┓
        ┃    n ┃
        ┡━━━━━━┩
        │    0 │
        │    1 │
        │    2 │
        │    ⋮ │
        │    8 │
        └──────┘
        … 5 more
        """
        return rendered(self._drawn(limit), width)

    def to_html(self, limit: int | None = LIMIT) -> str:
        """The table as notebooks show it, with at most ``limit`` rows; None stands for all."""
        return panel(self.title, grid(self.columns, *self._parts(limit)))

    def __rich__(self) -> RichTable:
        """The table for a rich console."""
        return self._drawn(LIMIT)

    def __str__(self) -> str:
        return self.to_string(LIMIT)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.to_html()

    def _drawn(self, limit: int | None) -> RichTable:
        return drawn(self.title, self.columns, *self._parts(limit))

    def _parts(self, limit: int | None) -> tuple[list[list[Any]], list[list[Any]], int]:
        """The first rows, the last ones, and how many lie between them."""
        first, last = shown_rows(len(self), limit)
        return self._cells(first), self._cells(last), last.start - first.stop

    def _cells(self, places: range) -> list[list[Any]]:
        rows = [self.rows[i] for i in places]
        return [[row[column] for column in self.columns] for row in rows]


class Tabled(ABC):
    """What shows itself by its table: printed, by the table's title where it is one of several, and in a notebook."""

    @abstractmethod
    def table(self) -> PlainTable:
        """The table."""

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        return f"<{self.table().title}>"

    def _repr_html_(self) -> str:
        return self.table().to_html()


def statistics(array: Array) -> dict[str, Any]:
    """What a table says of an array: its 2-norm, least and greatest element, zeros, non-finite elements.

    For people to read: computed by numpy in float64, not part of the bit contract.
    """
    x = array.astype(np.float64)
    low, high = _extremes(x)
    finite = x
    if not (math.isfinite(low) and math.isfinite(high)):
        finite = x[np.isfinite(x)]
        low, high = _extremes(finite)
    return {
        "norm": _norm(finite),
        "min": low if finite.size else None,
        "max": high if finite.size else None,
        "zeros": x.size - int(np.count_nonzero(x)),
        "non-finite": x.size - finite.size,
    }


def norm(array: Array) -> float:
    """The 2-norm of the finite elements, as `statistics` says it."""
    return _norm(array.astype(np.float64))


def _extremes(x: Array) -> tuple[float, float]:
    """The least and the greatest element, both NaN if one is; zeros if there is none."""
    if x.size == 0:
        return 0.0, 0.0
    return float(np.minimum.reduce(x, axis=None)), float(np.maximum.reduce(x, axis=None))


def _norm(x: Array) -> float:
    with np.errstate(over="ignore"):
        squares = float(np.add.reduce(x * x, axis=None))
    if _PLAIN[0] < squares < _PLAIN[1]:
        return math.sqrt(squares)
    finite = x[np.isfinite(x)]
    largest = float(np.maximum.reduce(np.abs(finite), axis=None, initial=0.0))
    scaled = finite / (largest or 1.0)  # squares neither overflow nor vanish
    return largest * math.sqrt(float(np.add.reduce(scaled * scaled, axis=None)))


_PLAIN = (1e-280, math.inf)
"""Sums of squares between these have lost nothing worth showing."""

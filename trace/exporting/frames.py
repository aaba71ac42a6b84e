"""Data frames of a trace, by packages that are extras."""

from typing import Any

import numpy as np

from ...base.arrays import Array
from ...base.packages import package
from ..v2.read.reader import TraceReader
from .columns import Coded, Columns
from .tables import Form, require_form, tables


def to_pandas(trace: TraceReader, form: Form = "wide") -> Any:
    """A `pandas.DataFrame`; words are categories. See `Trace.to_pandas`.

    >>> import pandas
    >>> from tempfile import TemporaryDirectory
    >>> from dgrr.runtime import SGD, Trainer
    >>> from dgrr.trace import open_trace
    >>> with TemporaryDirectory() as folder:
    ...     run = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.5), trace=f"{folder}/run.dgrr")
    ...     _ = run.fit([np.array([1.0, 2.0])], steps=2)
    ...     with open_trace(f"{folder}/run.dgrr") as trace:
    ...         frame, norms = trace.to_pandas(), trace.to_pandas("long")
    >>> frame.loss.tolist(), norms[norms.statistic == "gradient max"].value.tolist()
    ([3.0, 0.5], [2.0, 2.0])
    """
    require_form("trace.to_pandas", form)
    pandas = package("trace.to_pandas", "pandas")
    return pandas.DataFrame(
        {
            name: pandas.Categorical.from_codes(column.codes, column.words) if isinstance(column, Coded) else column
            for name, column in _joined_table(trace, form).items()
        }
    )


def to_arrow(trace: TraceReader, form: Form = "wide") -> Any:
    """A `pyarrow.Table`; words are dictionaries. See `Trace.to_arrow`."""
    require_form("trace.to_arrow", form)
    return arrow_table("trace.to_arrow", _joined_table(trace, form))


def to_polars(trace: TraceReader, form: Form = "wide") -> Any:
    """A `polars.DataFrame`; words are categories. See `Trace.to_polars`."""
    require_form("trace.to_polars", form)
    polars = package("trace.to_polars", "polars")
    return polars.DataFrame(
        {
            name: polars.Series([*column.words, None], dtype=polars.Categorical).gather(_last_for_none(column))
            if isinstance(column, Coded)
            else column
            for name, column in _joined_table(trace, form).items()
        }
    )


def arrow_table(call: str, columns: Columns) -> Any:
    """The columns as a `pyarrow.Table`."""
    arrow = package(call, "pyarrow")
    return arrow.table(
        {
            name: arrow.DictionaryArray.from_arrays(
                arrow.array(column.codes, mask=column.codes < 0), arrow.array(column.words, arrow.string())
            )
            if isinstance(column, Coded)
            else arrow.array(column)
            for name, column in columns.items()
        }
    )


def _last_for_none(column: Coded) -> Array:
    return np.where(column.codes < 0, len(column.words), column.codes)


def _joined_table(trace: TraceReader, form: Form) -> Columns:
    """All pieces of a table as one."""
    first, *others = tables(trace, form)
    for piece in others:
        first = {name: _joined(first[name], piece[name]) for name in first}
    return first


def _joined(a: Array | Coded, b: Array | Coded) -> Array | Coded:
    if isinstance(a, Coded) and isinstance(b, Coded):
        return Coded(np.concatenate([a.codes, b.codes]), a.words)
    return np.concatenate([np.asarray(a), np.asarray(b)])

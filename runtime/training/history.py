"""What a fit has measured: one row per step, and one per epoch."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from rich.table import Table as RichTable

from ...base.system import FilePath
from ..optim.groups import Groups
from .figures import Column, Figures


class History:
    """What a call of `Trainer.fit` measured, as two tables: ``history.steps`` and ``history.epochs``.

    ``history["loss"]``, ``len(history)``, ``history.to_pandas()`` and ``history.to_csv(path)`` are those of the steps;
    ``print(history)``, and showing it in a notebook, shows the epochs.

    A row of ``steps`` has the number of the step and of its epoch, both from 0 as callbacks get them; loss and metrics
    before the update; the learning rate, one for each group of parameters, as ``lr *.bias``; the gradient norm, if
    measured; the figures of the validation after the step; and the seconds since the fit began, which steps of one
    launch share equally. Steps count from the beginning of the run. A row of ``epochs`` has the number of the last
    step, means over the epoch's steps, the last learning rates and validation, and the seconds at its end.

    >>> from dgrr.runtime import SGD, Trainer
    >>> trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.zeros(2)}, SGD(0.5))
    >>> history = trainer.fit([np.ones(2)] * 3, epochs=2).history
    >>> history["loss"]
    array([ 0., -1., -2., -3., -4., -5.])
    >>> history.epochs["loss"], history.epochs.columns
    (array([-1., -4.]), ('epoch', 'step', 'loss', 'lr', 'seconds'))
    """

    def __init__(self, groups: Groups, first: int) -> None:
        self._groups, self._first, self._began = groups, first, perf_counter()
        self._losses, self._seconds, self._norms = list[float](), list[float](), list[float]()
        self._metrics: dict[int, Mapping[str, float]] = {}
        self._validated: dict[int, Mapping[str, float]] = {}
        self._nonfinite = list[int]()
        self._starts = list[tuple[int, int]]()
        self._ended = list[Mapping[str, float]]()

    # ------------------------------------------------------------------ what the trainer tells

    def begin_epoch(self, number: int) -> None:
        """The steps that follow are of this epoch."""
        self._starts.append((number, len(self._losses)))

    def add_steps(
        self, losses: Column | Sequence[Any], metrics: Sequence[Mapping[str, float]], norms: Sequence[float]
    ) -> None:
        """Steps are done, together since the last ones: each has its share of the time."""
        first, n, now = len(self._losses), len(losses), perf_counter()
        last = self._seconds[-1] if self._seconds else self._began
        if metrics[0]:
            self._metrics |= zip(range(first, first + n), metrics, strict=True)
        self._norms += norms
        self._losses += map(float, losses)
        self._seconds += [last + (now - last) * i / n for i in range(1, n)]
        self._seconds.append(now)

    def note_nonfinite(self) -> None:
        """The loss of the last step, or a gradient as the optimizer consumed it, was infinite or NaN."""
        self._nonfinite.append(self._first + len(self._losses) - 1)

    def add_validation(self, figures: Mapping[str, float]) -> None:
        """Figures that were measured after the last step."""
        if self._losses:
            self._validated[len(self._losses) - 1] = figures

    def end_epoch(self) -> None:
        """The epoch has ended; without a step it has no row."""
        number, start = self._starts[-1]
        end = len(self._losses)
        if end > start:
            row = {"epoch": number, "step": self._first + end - 1, "loss": 0.0, **self._rates(end - 1)}
            self._ended.append(
                {**row, **self._means(start), **self._validation(start), "seconds": perf_counter() - self._began}
            )

    # ------------------------------------------------------------------ the tables

    @property
    def steps(self) -> Figures:
        """One row per step."""
        n = len(self._losses)
        columns: dict[str, Column] = {
            "step": np.arange(self._first, self._first + n),
            "epoch": self._epochs_of_steps(),
            "loss": np.array(self._losses, np.float64),
        }
        rates = [self._rates(i) for i in range(n)]
        columns |= {name: np.array([row[name] for row in rates]) for name in self._rates(0)}
        if self._norms:
            columns["gradient_norm"] = np.array(self._norms)
        for rows in (self._metrics, self._validated):
            columns |= {name: _filled(rows, name, n) for name in _names(rows)}
        return Figures("steps", {**columns, "seconds": np.array(self._seconds, np.float64) - self._began})

    @property
    def epochs(self) -> Figures:
        """One row per epoch that has ended, or was cut short."""
        n, rows = len(self._ended), dict(enumerate(self._ended))
        columns = {
            name: _filled(rows, name, n)
            for name in _names(rows) or ("epoch", "step", "loss", *self._rates(0), "seconds")
        }
        whole = {name: columns[name].astype(np.int64) for name in ("epoch", "step")}
        seconds = columns.pop("seconds")
        return Figures("epochs", {**columns, **whole, "seconds": seconds})

    @property
    def first(self) -> int:
        """The number of the first step of this call, counted from the beginning of the run."""
        return self._first

    @property
    def nonfinite(self) -> tuple[int, ...]:
        """The numbers of steps with an infinite or NaN loss or gradient, with ``Trainer(on_nonfinite="record")``."""
        return tuple(self._nonfinite)

    def measured(self) -> tuple[Column, Column, Column]:
        """Loss and epoch of every step, and the norms of gradients, none where not measured; quicker than the table."""
        return np.array(self._losses, np.float64), self._epochs_of_steps(), np.array(self._norms)

    def last_epoch(self) -> Mapping[str, float]:
        """The row of the last epoch that has ended; no entries if there is none."""
        return self._ended[-1] if self._ended else {}

    def running(self) -> dict[str, float]:
        """The means of the epoch so far, and the last validation."""
        return {**self._means(self._starts[-1][1]), **self._validation(0)} if self._losses else {}

    def _means(self, start: int) -> dict[str, float]:
        """The means over the steps from one on: loss, norm of the gradients, metrics."""
        found = {"loss": _mean(self._losses[start:])}
        if self._norms:
            found["gradient_norm"] = _mean(self._norms[start:])
        rows = {i: self._metrics[i] for i in range(start, len(self._losses)) if i in self._metrics}
        return found | {name: _mean([row[name] for row in rows.values() if name in row]) for name in _names(rows)}

    def _validation(self, start: int) -> Mapping[str, float]:
        """The last validation behind a step from one on."""
        last = next(reversed(self._validated), -1)
        return self._validated[last] if last >= start else {}

    def _epochs_of_steps(self) -> Column:
        numbers = np.zeros(len(self._losses), np.int64)
        for number, start in self._starts:
            numbers[start:] = number
        return numbers

    def _rates(self, i: int) -> dict[str, float]:
        """The learning rate of a row by its column."""
        rates = self._groups.rates(self._first + i + 1)
        return {f"lr {p}": rate for p, rate in rates.items()} if len(rates) > 1 else {"lr": next(iter(rates.values()))}

    # ------------------------------------------------------------------ the steps' table

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of the steps."""
        return self.steps.columns

    def __len__(self) -> int:
        return len(self._losses)

    def __getitem__(self, name: str) -> Column:
        """A column of the steps. Raises DomainError for another name."""
        return self.steps[name]

    def to_pandas(self) -> Any:
        """The steps as a pandas DataFrame. Raises ModuleNotFoundError where pandas is not installed."""
        return self.steps.to_pandas()

    def to_csv(self, path: FilePath) -> None:
        """Write the steps as comma-separated values; see `Figures.to_csv`."""
        self.steps.to_csv(path)

    # ------------------------------------------------------------------ showing

    def __rich__(self) -> RichTable:
        return self.epochs.__rich__()

    def __str__(self) -> str:
        return str(self.epochs)

    def __repr__(self) -> str:
        return f"History({len(self)} steps, {len(self._ended)} epochs)"

    def _repr_html_(self) -> str:
        """The epochs in a notebook."""
        return self.epochs.to_html()


def _names(rows: Mapping[int, Mapping[str, float]]) -> list[str]:
    """Every name that a row has, in the order of their coming."""
    return list(dict.fromkeys(name for row in rows.values() for name in row))


def _filled(rows: Mapping[int, Mapping[str, float]], name: str, n: int) -> Column:
    """A column with NaN in rows that have no such entry."""
    column = np.full(n, np.nan)
    for i, row in rows.items():
        column[i] = row.get(name, np.nan)
    return column


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")

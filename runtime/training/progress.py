"""Showing how a long run gets on: a bar on a terminal and in a notebook, a line per epoch elsewhere.

It counts, as people do: ``epoch 1/20`` is the first of twenty. Numbers that a program reads, in the history and in what
callbacks are told, are indices from 0.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from ...screen.showing import has_bar, rate

EVERY = 0.1
"""Seconds between two looks of the bar at the figures."""


class Reporter(Protocol):
    """Told of all steps and every epoch."""

    def steps(self, n: int) -> None:
        """So many more steps are done."""

    def epoch(self, number: int, figures: Mapping[str, float]) -> None:
        """One epoch is done; ``figures`` are its means and the last validation."""


class Silent:
    """Shows nothing."""

    def steps(self, n: int) -> None:
        """Nothing."""

    def epoch(self, number: int, figures: Mapping[str, float]) -> None:
        """Nothing."""


class Lines:
    """One plain line per epoch."""

    def __init__(self, console: Console, epochs: int | None) -> None:
        self._console, self._of = console, "?" if epochs is None else epochs
        self._steps, self._counted, self._since = 0, 0, perf_counter()

    def steps(self, n: int) -> None:
        """Count."""
        self._steps += n

    def epoch(self, number: int, figures: Mapping[str, float]) -> None:
        """Print the epoch's line; one of which a resumed fit had nothing left to do has none."""
        if not figures:
            return
        now = perf_counter()
        speed = rate(self._steps - self._counted, now - self._since)
        self._counted, self._since = self._steps, now
        text = ", ".join([f"step {self._steps}", *_shown(figures), speed])
        self._console.print(f"epoch {number + 1}/{self._of}: {text}", highlight=False, soft_wrap=True)


class Bar:
    """A progress bar with the figures of the epoch so far, which it reads now and then."""

    def __init__(
        self, progress: Progress, total: int | None, epochs: int | None, running: Callable[[], Mapping[str, float]]
    ) -> None:
        self._progress, self._of, self._running = progress, "?" if epochs is None else epochs, running
        self._task = progress.add_task(f"epoch 1/{self._of}", total=total, figures="")
        self._steps, self._drawn, self._began = 0, 0, perf_counter()
        self._next = self._began

    def steps(self, n: int) -> None:
        """Advance the bar, if it is time to."""
        self._steps += n
        now = perf_counter()
        if now >= self._next:
            self._next = now + EVERY
            self._draw(self._running())

    def epoch(self, number: int, figures: Mapping[str, float]) -> None:
        """Show what the epoch has come to; the steps that follow are of the next one."""
        self._progress.update(self._task, description=f"epoch {number + 1}/{self._of}")
        self._draw(figures)

    def _draw(self, figures: Mapping[str, float]) -> None:
        speed = rate(self._steps, perf_counter() - self._began)
        text = "  ".join([speed, *_shown(figures)])
        self._progress.update(self._task, completed=self._steps, figures=text)


def _shown(figures: Mapping[str, float]) -> list[str]:
    return [f"{name} {value:.4f}" for name, value in figures.items()]


@contextmanager
def reporting(
    progress: bool | None,
    total: int | None,
    epochs: int | None,
    running: Callable[[], Mapping[str, float]],
    console: Console | None = None,
) -> Generator[Reporter]:
    """A reporter: None shows a bar on a terminal or in a notebook only, True also lines elsewhere, False nothing."""
    shown = console or Console()
    if progress is False or (progress is None and not (shown.is_terminal or shown.is_jupyter)):
        yield Silent()
    elif not has_bar(shown):
        yield Lines(shown, epochs)
    else:
        columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn())
        figures = TextColumn("{task.fields[figures]}", markup=False, table_column=Column(no_wrap=False))
        with Progress(*columns, figures, console=shown) as bar:  # where it is narrow, the figures take several lines
            yield Bar(bar, total, epochs, running)
            if shown.is_jupyter:
                bar.refresh()  # which rich does at the end of a bar on a terminal only

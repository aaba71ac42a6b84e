"""Showing how a long run gets on: a bar on a terminal, a line per epoch elsewhere."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Reporter(Protocol):
    """Told of every step and every epoch."""

    def step(self, loss: float) -> None:
        """One step is done."""

    def epoch(self, number: int, loss: float) -> None:
        """One epoch is done; ``loss`` is that of its last step."""


class Silent:
    """Shows nothing."""

    def step(self, loss: float) -> None:
        """Nothing."""

    def epoch(self, number: int, loss: float) -> None:
        """Nothing."""


class Lines:
    """One plain line per epoch."""

    def __init__(self, console: Console) -> None:
        self._console, self._steps = console, 0

    def step(self, loss: float) -> None:
        """Count."""
        self._steps += 1

    def epoch(self, number: int, loss: float) -> None:
        """Print the epoch's line."""
        self._console.print(f"epoch {number + 1}: step {self._steps}, loss {loss:.4f}", highlight=False)


class Bar:
    """A progress bar."""

    def __init__(self, progress: Progress, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task("training", total=total, loss="")

    def step(self, loss: float) -> None:
        """Advance the bar."""
        self._progress.update(self._task, advance=1, loss=f"loss {loss:.4f}")

    def epoch(self, number: int, loss: float) -> None:
        """Nothing: the bar shows steps."""


@contextmanager
def reporting(progress: bool | None, total: int | None, console: Console | None = None) -> Generator[Reporter]:
    """A reporter: None shows a bar on a terminal only, True also lines elsewhere, False nothing."""
    shown = console or Console()
    if progress is False or (progress is None and not shown.is_terminal):
        yield Silent()
    elif not shown.is_terminal:
        yield Lines(shown)
    else:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, TextColumn("{task.fields[loss]}"), console=shown) as bar:
            yield Bar(bar, total)

"""A bar of what is done of long work, on a terminal."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")


def showing(
    results: Iterable[T], what: str, total: int, *, wanted: bool, done: int = 0, console: Console | None = None
) -> Iterator[T]:
    """Results as they come, each of which advances a bar; where none is wanted, or on no terminal, without one.

    The bar goes away with the last. What a model prints meanwhile goes where it would.
    """
    shown = console or Console(stderr=True)
    return _with_bar(results, what, total, done, shown) if wanted and shown.is_terminal else iter(results)


def _with_bar(results: Iterable[T], what: str, total: int, done: int, shown: Console) -> Iterator[T]:
    columns = (TextColumn(what, markup=False), BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=shown, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task("", total=total, completed=done)
        for result in results:
            yield result
            bar.advance(task)

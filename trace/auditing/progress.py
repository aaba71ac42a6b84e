"""A bar of the units that are done, on a terminal."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")


def showing(
    results: Iterable[T], done: int, total: int, *, wanted: bool, console: Console | None = None
) -> Iterator[T]:
    """Results as they come, each of which advances a bar; where none is wanted, or on no terminal, without one."""
    shown = console or Console(stderr=True)
    if not wanted or not shown.is_terminal:
        yield from results
        return
    columns = (TextColumn("audit"), BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=shown) as bar:
        task = bar.add_task("", total=total, completed=done)
        for result in results:
            yield result
            bar.advance(task)

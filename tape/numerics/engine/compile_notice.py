"""Saying on a terminal that kernels are being compiled: once, and for seconds in which nothing else happens."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache

from rich.console import Console
from rich.file_proxy import FileProxy
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from ....screen.showing import has_bar

BEGINNING = "dgrr: compiling"
"""How all begins that is said."""

Told = Callable[[str], None]
"""Is given the name of each thing that has been compiled."""


class _Screen:
    """Whether a bar is shown. Forked processes inherit it, and so say nothing themselves."""

    taken = False


def _nothing(name: str) -> None:
    pass


def _console() -> Console | None:
    """Where to say something: a terminal or a notebook, if nothing is being said there."""
    console = Console(stderr=True)
    return console if (console.is_terminal or console.is_jupyter) and not _Screen.taken else None


@cache
def tell_of_first_use() -> None:
    """Say, once in a process, that kernels are compiled when they are first used."""
    if _console() is not None:
        print(f"{BEGINNING} kernels on first use, once", file=sys.stderr)


@contextmanager
def compile_notice(what: str, count: int) -> Generator[Told]:
    """A bar while so many things are compiled; a line where another is shown or none can be, and none off terminals."""
    console, title = _console(), f"{BEGINNING} {what}, once"
    if console is None or isinstance(sys.stderr, FileProxy) or not has_bar(console):
        if console is not None:
            print(title, file=sys.stderr)  # through the proxy of the other bar, which stays below
        yield _nothing
        return
    _Screen.taken = True
    try:
        columns = (TextColumn(title), BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("", total=count)
            yield lambda name: progress.update(task, advance=1, description=name)
    finally:
        _Screen.taken = False

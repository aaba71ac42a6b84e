"""``dgrr show`` and ``dgrr ls``: a run on one screen, also while it is recorded, and the runs of a folder."""

import sys
from contextlib import ExitStack

from rich.console import Console
from rich.live import Live

from ...screen.showing import styled, text_width
from ..showing import folder as folders
from ..showing.follow import follow
from ..showing.overview import RunOverview, overview
from .answer import Answer, done


def show(path: str, *, following: bool) -> Answer:
    """Show a run; with ``following`` first what comes of it until it ends."""
    if following:
        path = _followed(path)
    run = overview(path)
    return done({"run": run.to_dict()}, "" if following and _redraws() else styled(run.screen(text_width())))


def ls(folder: str, *, recursive: bool) -> Answer:
    """Show the traces of a folder."""
    found = folders.entries(folder, recursive=recursive)
    result = {"folder": folder, "traces": [entry.to_dict() for entry in found]}
    return done(result, styled(folders.screen(found, folder)))


def _followed(path: str) -> str:
    """Draw the screen anew for every look on a terminal, else print a line."""
    if not _redraws():
        return follow(path, lambda run: print(run.line(), flush=True))
    with ExitStack() as stack:
        live = stack.enter_context(Live(console=Console(), auto_refresh=False))

        def draw(run: RunOverview) -> None:
            live.update(run.screen(live.console.width), refresh=True)

        path = follow(path, draw)
        draw(overview(path))
    return path


def _redraws() -> bool:
    return sys.stdout.isatty()

"""``dgrr show``: a run on one screen, also while it is recorded; or several, one line each."""

import argparse
import os
import sys

from ...answer import Answer, Fact, done
from ...arguments import Parser, UsageError, path
from ...formats import require_answer

HELP = """
Show a run on one screen: its loss, its worst gradients, its speed, its verdict. Of several show a table.

examples:
  dgrr show run.dgrr             also of a run that is not finished
  dgrr show --follow run.dgrr    while it is recorded
  dgrr show a.dgrr b.dgrr        their losses, validations and notes, one line each
"""


def add_arguments(parser: Parser) -> None:
    traces = "the trace, finished or not; of several a line each"
    parser.add_argument("paths", type=path, nargs="+", metavar="PATH", help=traces)
    follow = "show what comes of a run while it is recorded, until it ends"
    parser.add_argument("-f", "--follow", action="store_true", help=follow)


def run(args: argparse.Namespace) -> Answer:
    """Show a run; with ``--follow`` first what comes of it until it ends."""
    if len(args.paths) > 1:
        return _several(args)
    from .....screen.showing import styled, text_width
    from ....showing.overview import overview

    (path,) = args.paths
    require_answer(args, _there(path))
    shown = overview(_followed(path) if args.follow else path)
    drawn = args.follow and _redraws()
    return done(Fact("run", shown, "" if drawn else styled(shown.screen(text_width()))), Fact("runs", None))


def _several(args: argparse.Namespace) -> Answer:
    """A table of the runs."""
    if args.follow:
        raise UsageError("argument --follow: one run is followed at a time")
    from .....screen.showing import styled
    from ....showing.folder import entry, screen

    found = [entry(_there(path)) for path in args.paths]
    return done(Fact("run", None), Fact("runs", found, styled(screen(found, "."))))


def _there(path: str) -> str:
    """The file of a run: its own, or that of one which is not finished."""
    partial = f"{path}.partial"
    return partial if os.path.exists(partial) and not os.path.exists(path) else path


def _followed(path: str) -> str:
    """Draw the screen anew for every look on a terminal, else print a line."""
    from rich.console import Console
    from rich.live import Live

    from ....showing.follow import follow
    from ....showing.overview import RunOverview, overview

    if not _redraws():
        return follow(path, lambda run: print(run.line(), flush=True))
    with Live(console=Console(), auto_refresh=False) as live:

        def draw(run: RunOverview) -> None:
            live.update(run.screen(live.console.width), refresh=True)

        path = follow(path, draw)
        draw(overview(path))
    return path


def _redraws() -> bool:
    return sys.stdout.isatty()

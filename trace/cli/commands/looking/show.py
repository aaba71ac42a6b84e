"""``dgrr show``: a run on one screen, also while it is recorded."""

import argparse
import os
import sys

from ...answer import Answer, done
from ...arguments import Parser
from ...formats import require_answer

HELP = """
Show a run on one screen: its loss, its worst gradients, its speed, its verdict.

examples:
  dgrr show run.dgrr             also of a run that is not finished
  dgrr show --follow run.dgrr    while it is recorded
"""


def add_arguments(parser: Parser) -> None:
    parser.trace("the trace, finished or not")
    follow = "show what comes of a run while it is recorded, until it ends"
    parser.add_argument("-f", "--follow", action="store_true", help=follow)


def run(args: argparse.Namespace) -> Answer:
    """Show a run; with ``--follow`` first what comes of it until it ends."""
    from .....screen.showing import styled, text_width
    from ....showing.overview import overview

    path: str = args.path
    partial = f"{path}.partial"
    require_answer(args, partial if os.path.exists(partial) and not os.path.exists(path) else path)
    shown = overview(_followed(path) if args.follow else path)
    drawn = args.follow and _redraws()
    return done({"run": shown.to_dict()}, "" if drawn else styled(shown.screen(text_width())))


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

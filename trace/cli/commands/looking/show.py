"""``dgrr show``: a run on one screen, also while it is recorded; several, one line each; or a tensor of a run."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from ...answer import Answer, Fact, done
from ...arguments import Parser, UsageError, path
from ...formats import require_answer

if TYPE_CHECKING:
    from ....v2.read.reader import TraceReader
    from ....watching.expression import What

HELP = """
Show loss, worst gradients, speed and verdict of a run, or several runs as a table.

examples:
  dgrr show run.dgrr             finished or not
  dgrr show --follow run.dgrr    while it is recorded
  dgrr show a.dgrr b.dgrr        losses, validations and notes, one line each
  dgrr show run.dgrr --tensor 0.weight --step 3                a picture of a gradient
  dgrr show run.dgrr --tensor 0.weight --step 3 --what value   the weights before the step
"""


def add_arguments(parser: Parser) -> None:
    traces = "trace file, finished or not; several are shown as a table"
    parser.add_argument("paths", type=path, nargs="+", metavar="PATH", help=traces)
    follow = "follow a run while it is recorded, until it ends"
    parser.add_argument("-f", "--follow", action="store_true", help=follow)
    tensor = "show a picture of this tensor: one cell per element, coloured by sign and size"
    parser.add_argument("--tensor", metavar="NAME", help=tensor)
    parser.step("with --tensor: step to show, from 0; default: the last one recorded", "N")
    what = "with --tensor: value before the step, gradient, or what the step added; default: grad"
    parser.add_argument("--what", choices=("value", "grad", "update"), help=what)


def run(args: argparse.Namespace) -> Answer:
    """Show a run; with ``--follow``, first follow it until it ends; with ``--tensor``, a picture."""
    if args.tensor is not None:
        return _tensor(args)
    for option in ("step", "what"):
        if getattr(args, option) is not None:
            args.parser.error(f"argument --{option}: it requires --tensor")
    if len(args.paths) > 1:
        return _several(args)
    from .....screen.showing import styled, text_width
    from ....showing.overview import overview

    (path,) = args.paths
    require_answer(args, _there(path))
    shown = overview(_followed(path) if args.follow else path)
    drawn = args.follow and _redraws()
    return _shown("run", shown, "" if drawn else styled(shown.screen(text_width())))


def _several(args: argparse.Namespace) -> Answer:
    """A table of the runs."""
    if args.follow:
        raise UsageError("argument --follow: it follows one run at a time")
    from .....screen.showing import styled
    from ....showing.folder import entry, screen

    found = [entry(_there(path)) for path in args.paths]
    return _shown("runs", found, styled(screen(found, ".")))


def _tensor(args: argparse.Namespace) -> Answer:
    """A picture of a tensor of one run."""
    from .....screen.showing import styled
    from ....showing.overview import read
    from ....showing.shown_tensor import ShownTensor

    if len(args.paths) > 1 or args.follow:
        args.parser.error("argument --tensor: it takes one run, and no --follow")
    path = _there(args.paths[0])
    require_answer(args, path)
    what: What = args.what or "grad"
    with read(path, "tolerate_tail") as trace:
        _require_there(trace, args.tensor, args.step, what)
        found = ShownTensor.of(trace, args.tensor, what, args.step)
    return _shown("tensor", found.to_dict(), styled(found.screen()))


def _require_there(trace: "TraceReader", name: str, step: int | None, what: str) -> None:
    """Raise UsageError for a tensor or a step that a trace has not; the value before no step is that at the end."""
    from .....base.suggest import listing
    from ...inspection import step_of

    if name not in trace.schema.position:
        there = listing(name, [spec.name for spec in trace.schema.tensors])
        raise UsageError(f"argument --tensor: {trace.path} has no tensor {name!r}: it has {there}")
    if not len(trace) or (step is not None and step != len(trace) - (what != "value")):
        step_of(trace, step or 0)


def _shown(what: str, found: object, text: str) -> Answer:
    """The answer, under one of the keys."""
    return done(*(Fact(key, found, text) if key == what else Fact(key, None) for key in ("run", "runs", "tensor")))


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

"""``dgrr demo``."""

import argparse
from pathlib import Path

from .....base.errors import NonFiniteError
from ....exit_codes import Exit
from ....file_version import TraceFileError
from ...answer import Answer, failed
from ...arguments import DEFAULT, MAX_STEPS, UINT64, Parser, path

HELP = """
Train digits, record the run, prove it by replay.

examples:
  dgrr demo                       takes a minute or less
  dgrr demo --out run.dgrr        keep the trace under another name
"""

_OUT = "demo.dgrr"


def add_arguments(parser: Parser) -> None:
    out = f"trace to write; default: {_OUT}, which every run replaces"
    parser.add_argument("--out", dest="path", type=path, metavar="PATH", help=out)
    parser.add_argument("--overwrite", action="store_true", help="replace an existing trace")
    parser.number("--epochs", 1, MAX_STEPS, "N", f"number of epochs; {DEFAULT}", default=20)
    parser.number("--seed", 0, UINT64, "UINT64", f"seed of the run; {DEFAULT}", default=0)
    parser.number("--batch", 1, MAX_STEPS, "N", f"batch size; {DEFAULT}", default=64)
    parser.add_argument("--optimizer", choices=("adam", "sgd"), default="adam", help=f"optimizer; {DEFAULT}")
    parser.record("the trace")
    parser.set_defaults(paths_of=_paths_of)


def _paths_of(args: argparse.Namespace) -> list[str]:
    return [args.path or _OUT]


def run(args: argparse.Namespace) -> Answer:
    """Run the demo; it prints every step on its way, and the answer holds what it found."""
    from ...demo import Demo

    out = Path(args.paths[0])
    try:
        there = next((name for name in (out, _unfinished(out)) if name.is_file()), None)
        if there is not None and not args.overwrite and (args.path is not None or there != out):
            text = f"{there} already exists: choose another --out, or pass --overwrite to replace it"
            return failed(Exit.IO, text)
        return Demo(args, out).run()
    except KeyboardInterrupt:
        return failed(Exit.INTERRUPTED, f"interrupted; {_good(out)}")
    except NonFiniteError as error:
        return failed(Exit.DIVERGED, str(error))


def _unfinished(out: Path) -> Path:
    """Where the trace is until it ends, and stays where it is interrupted."""
    return out.with_name(f"{out.name}.partial")


def _good(out: Path) -> str:
    """How far the trace of an interrupted run is good."""
    from ....v2.read.reader import open_reader

    partial = _unfinished(out)
    try:
        with open_reader(partial, mode="tolerate_tail") as trace:
            return f"{partial} is readable and holds {len(trace)} whole steps"
    except TraceFileError:  # not begun, or cut within its head; or sealed before the interrupt came
        return f"{out} is complete" if out.exists() else "nothing was recorded"

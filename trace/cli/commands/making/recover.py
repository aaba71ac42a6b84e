"""``dgrr recover``."""

import argparse

from ...answer import Answer, Fact, judged
from ...arguments import Parser, UsageError, path

HELP = """
Write the intact part of a damaged or unfinished trace to a new one.

Steps after damage become separate traces, from the next keyframe on. Traces of version 1 have no keyframes.

examples:
  dgrr recover cut.dgrr -o whole.dgrr              exit code 7 if something recorded is lost
  dgrr recover cut.dgrr copy.dgrr -o whole.dgrr    fill the gaps of one from the other
"""


def add_arguments(parser: Parser) -> None:
    sources = "trace file, or several of one run: copies, halves, and tails PATH.torn; they are only read"
    parser.add_argument("paths", type=path, nargs="+", metavar="PATH", help=sources)
    out = "new trace to write; steps after damage go to NEW.1, NEW.2 and so on"
    parser.new_file(out, required=True)


def run(args: argparse.Namespace) -> Answer:
    """Write the intact part of a trace, or of several files of one run, and say what that is."""
    from ....v2.repair.recover import recover

    try:
        found = recover(args.paths, args.out)
    except ValueError as error:
        argument = "PATH" if "argument 'path'" in str(error) else "--out"
        raise UsageError(f"argument {argument}: {error}") from None
    return judged(found, Fact("recovery", found), answers=not found.lossy)

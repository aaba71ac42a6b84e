"""``dgrr recover``."""

import argparse

from ...answer import Answer, Fact, judged
from ...arguments import Parser, UsageError, path

HELP = """
Write what is whole of a damaged or unfinished trace to a new one.

Steps behind damage become traces of their own, from the next keyframe on. Traces of version 1 have none.

examples:
  dgrr recover cut.dgrr -o whole.dgrr              0 if nothing recorded was lost, else 7
  dgrr recover cut.dgrr copy.dgrr -o whole.dgrr    what one has lost, from the other
"""


def add_arguments(parser: Parser) -> None:
    sources = "the trace, or the halves of one: other copies, and tails PATH.torn; they are only read"
    parser.add_argument("paths", type=path, nargs="+", metavar="PATH", help=sources)
    out = "write what is whole to this new trace; steps after damage to NEW.1, NEW.2 and so on"
    parser.new_file(out, required=True)


def run(args: argparse.Namespace) -> Answer:
    """Write what is whole of a trace, or of the halves of one, and say what that is."""
    from ....v2.repair.recover import recover

    try:
        found = recover(args.paths, args.out)
    except ValueError as error:
        argument = "PATH" if "argument 'path'" in str(error) else "--out"
        raise UsageError(f"argument {argument}: {error}") from None
    return judged(found, Fact("recovery", found), answers=not found.lossy)

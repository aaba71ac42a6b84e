"""``dgrr rollback``."""

import argparse

from ...answer import Answer
from ...arguments import Parser, path
from ...formats import format_of

HELP = """
Show the state before a step, or write the trace up to it.

examples:
  dgrr rollback run.dgrr --step 100                     writes nothing
  dgrr rollback run.dgrr --step 100 --out first.dgrr    writes steps 0 to 99
"""


def add_arguments(parser: Parser) -> None:
    parser.trace_or_option("show the state before this step, from 0", required=True)
    out = "write the steps before S to this new trace; default: write nothing"
    parser.add_argument("--out", type=path, metavar="PATH", help=out)


def run(args: argparse.Namespace) -> Answer:
    return format_of(args).rollback(args)

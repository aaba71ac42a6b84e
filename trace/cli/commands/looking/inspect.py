"""``dgrr inspect``."""

import argparse

from ...answer import Answer
from ...arguments import Parser
from ...formats import format_of

HELP = """
Show everything recorded about a trace or a step.

examples:
  dgrr inspect run.dgrr             seed, optimizer, tensors, events
  dgrr inspect run.dgrr --step 3    loss, digests, hyperparameters of step 3
"""


def add_arguments(parser: Parser) -> None:
    parser.trace_or_option("step to show, from 0; default: the whole trace (version 2)")


def run(args: argparse.Namespace) -> Answer:
    return format_of(args).inspect(args)

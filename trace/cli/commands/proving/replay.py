"""``dgrr replay``."""

import argparse

from ...answer import Answer
from ...arguments import Parser
from ...formats import format_of

HELP = """
Recompute recorded updates and compare them.

MODULE is in the current folder, or installed.
Traces of dgrr train are of version 1: they need --step, and take no --model or --rule.

examples:
  dgrr replay run.dgrr                       every update, from the recorded gradients
  dgrr replay run.dgrr --model train:run     and every loss and gradient
  dgrr replay run.dgrr --step 3              and show step 3
"""


def add_arguments(parser: Parser) -> None:
    parser.trace_or_option("also show this step, from 0; required for version 1")
    parser.ulp_tolerance()
    parser.model("also recompute every gradient with this function, which returns (loss_fn, batches)")
    parser.mode()
    parser.rules()
    parser.seed_and_numerics()
    parser.expectations()


def run(args: argparse.Namespace) -> Answer:
    return format_of(args).replay(args)

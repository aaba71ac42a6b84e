"""``dgrr replay``."""

import argparse

from ...answer import Answer
from ...arguments import Parser
from ...formats import format_of

HELP = """
Recompute recorded updates and compare them.

Modules are those of the current folder and the installed ones.
Traces of dgrr train are of version 1: they need --step, and take no --model or --rule.

examples:
  dgrr replay run.dgrr                       every update, from the recorded gradients
  dgrr replay run.dgrr --model train:run     every loss and gradient, too
  dgrr replay run.dgrr --step 3              and show step 3
"""


def add_arguments(parser: Parser) -> None:
    parser.trace_or_option("a step to show too, from 0; traces of version 1 need it")
    parser.ulp_tolerance()
    parser.model("execute the gradients again, too: what returns (loss_fn, batches) when it is called")
    parser.mode()
    parser.rules()
    parser.seed_and_numerics()
    parser.expectations()


def run(args: argparse.Namespace) -> Answer:
    return format_of(args).replay(args)

"""``dgrr validate``."""

import argparse

from ...answer import Answer
from ...arguments import Parser
from ...formats import format_of

HELP = """
Check every rule of the format.

examples:
  dgrr validate run.dgrr          structure, chains and digests
"""


def add_arguments(parser: Parser) -> None:
    parser.trace()
    parser.expectations()


def run(args: argparse.Namespace) -> Answer:
    return format_of(args).validate(args)

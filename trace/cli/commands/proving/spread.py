"""``dgrr spread``."""

import argparse

from ...answer import Answer, Fact, done
from ...arguments import Parser, UsageError, path

HELP = """
Derive a tolerance from runs of one code on several machines.

examples:
  dgrr spread avx2.dgrr avx512.dgrr arm.dgrr   what compare and golden tests take as a policy
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("paths", type=path, nargs="+", metavar="PATH", help="traces of the same steps, two at least")


def run(args: argparse.Namespace) -> Answer:
    from .....base.errors import DomainError
    from ....comparing.several.spread import spread

    try:
        found = spread(args.paths)
    except DomainError as error:
        raise UsageError(f"argument PATH: {str(error).removeprefix('spread: ')}") from None
    return done(Fact("spread", found, str(found)))

"""``dgrr ls``."""

import argparse

from ...answer import Answer, Fact, done
from ...arguments import DEFAULT, Parser, path

HELP = """
List the traces of a folder.

examples:
  dgrr ls                  those of the current folder
  dgrr ls -r experiments   those of the folders below it, too
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("path", type=path, nargs="?", default=".", metavar="FOLDER", help=DEFAULT)
    parser.add_argument("-r", "--recursive", action="store_true", help="of the folders below it, too")


def run(args: argparse.Namespace) -> Answer:
    from .....screen.showing import styled
    from ....showing.folder import entries, screen

    found = entries(args.path, recursive=args.recursive)
    return done(Fact("folder", args.path), Fact("traces", found, styled(screen(found, args.path))))

"""``dgrr ls``."""

import argparse

from ...answer import Answer, Fact, done
from ...arguments import DEFAULT, Parser, path

HELP = """
List the traces in a folder.

examples:
  dgrr ls                  the current folder
  dgrr ls -r experiments   with all folders below it
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("path", type=path, nargs="?", default=".", metavar="FOLDER", help=f"folder to list; {DEFAULT}")
    parser.add_argument("-r", "--recursive", action="store_true", help="also list the folders below it")


def run(args: argparse.Namespace) -> Answer:
    from .....screen.showing import styled
    from ....showing.folder import entries, screen

    found = entries(args.path, recursive=args.recursive)
    return done(Fact("folder", args.path), Fact("traces", found, styled(screen(found, args.path))))

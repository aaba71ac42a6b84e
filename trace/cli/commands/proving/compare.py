"""``dgrr compare``."""

import argparse
from functools import partial

from ...answer import Answer
from ...arguments import Parser, path
from ...formats import format_of, require_answer

HELP = """
Find the first difference of two traces.

dgrr diff is the short name of dgrr compare. Modules are those of the current folder and the installed ones.

examples:
  dgrr diff old.dgrr new.dgrr                  to the bit
  dgrr diff old.dgrr new.dgrr --policy ulp=4   recorded values up to 4 units in the last place apart
  dgrr diff old.dgrr --model train:run         the run as run() of train.py computes it now
"""

ALIASES = ("diff",)


def add_arguments(parser: Parser) -> None:
    parser.two_traces()
    parser.add_argument("--a", type=path, metavar="PATH_A", help="the first of them")
    parser.add_argument("--b", type=path, metavar="PATH_B", help="the second")
    parser.policy()
    parser.ulp_tolerance()
    proven = "validate both files first, and compare every op that is recorded"
    parser.add_argument("--proven", action="store_true", help=proven)
    parser.model("compute the second run now: what returns (loss_fn, batches) when it is called")
    parser.rules()
    parser.mode()


def run(args: argparse.Namespace) -> Answer:
    if args.policy is not None and args.ulp_tol:
        args.parser.error("argument --policy: it says what --ulp-tol says; give one of them")
    policy: str = args.policy or (f"ulp={args.ulp_tol}" if args.ulp_tol else "bitwise")
    if args.model is not None:
        return _with_model(args, policy)
    args.parser.require_model(args)
    return format_of(args).compare(args, policy)


def _with_model(args: argparse.Namespace, policy: str) -> Answer:
    require_answer(args, args.paths[0])
    from ....comparing.with_model import diff_with_model
    from ...v2 import compare_with_model

    return compare_with_model(args, partial(diff_with_model, policy=policy))

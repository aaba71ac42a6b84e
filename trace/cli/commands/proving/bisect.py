"""``dgrr bisect``."""

import argparse
import sys
from collections.abc import Generator
from contextlib import contextmanager

from ...answer import Answer
from ...arguments import Parser
from ...formats import format_of, require_answer

HELP = """
Find the first different step of two runs, reading or computing only a few.

With --train-b, of two runs of PyTorch the first different op: its name, options, layer and line. MODULE
is in the current folder, or installed.

examples:
  dgrr bisect old.dgrr new.dgrr                    from the links of both
  dgrr bisect old.dgrr --model train:run           from the recorded states
  dgrr bisect --git old.dgrr --model train:run     in git bisect run: which commit changed the numbers
  dgrr bisect a.dgrr b.dgrr --train-a run:a --train-b run:b     by which op two runs of PyTorch part
  dgrr bisect a.dgrr --train-a run:a --train-b run:b            the same, one of them trained now
"""


def add_arguments(parser: Parser) -> None:
    parser.two_traces()
    parser.model("recompute steps of the run with this function, which returns (loss_fn, batches)")
    parser.rules()
    parser.mode()
    parser.trains()
    parser.add_argument("--proven", action="store_true", help="validate the files first")
    git = "exit as git bisect run expects: 0 the same, 4 different, 125 unknown"
    parser.add_argument("--git", action="store_true", help=git)


def run(args: argparse.Namespace) -> Answer:
    trained = [option for option in ("train_a", "train_b") if getattr(args, option)]
    if args.model is not None:
        for option in trained:
            args.parser.error(f"argument --{option.replace('_', '-')}: not allowed with argument --model")
        return _with_model(args)
    args.parser.require_model(args)
    if trained:
        return _with_training(args, trained)
    return format_of(args).compare(args, "bitwise")


def _with_model(args: argparse.Namespace) -> Answer:
    require_answer(args, args.paths[0])
    from ....comparing.bisect_model import bisect_with_model
    from ...v2 import compare_with_model

    with _no_bytecode():
        return compare_with_model(args, bisect_with_model)


def _with_training(args: argparse.Namespace, options: list[str]) -> Answer:
    for path in args.paths:
        if require_answer(args, path) == 1:
            args.parser.error(f"argument PATH: {path} is of version 1, which holds no run of PyTorch")
    if args.proven:
        args.parser.error("argument --proven: not allowed with --train-a and --train-b: validate the files before")
    from ...v2 import compare_with_training

    with _no_bytecode():
        return compare_with_training(args, options)


@contextmanager
def _no_bytecode() -> Generator[None]:
    """Leave no bytecode of a user's modules: it is told apart from that of another commit by seconds and sizes."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before

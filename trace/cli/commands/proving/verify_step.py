"""``dgrr verify-step``: check a captured training step, and say what does not hold."""

import argparse

from .....base.errors import DgrrError
from ....exit_codes import Exit
from ...answer import Answer, Fact, done, ended
from ...arguments import DEFAULT, MAX_STEPS, Parser, UsageError
from ...loading import load_step

HELP = """
Check a captured training step from its graph to its memory.

MODULE is in the current folder, or installed.

examples:
  dgrr verify-step                 the reference model
  dgrr verify-step train:make      the step that make() of train.py returns
  dgrr verify-step --device cuda   the reference model on an NVIDIA GPU
"""


def add_arguments(parser: Parser) -> None:
    parser.captured_step("function that returns a captured step; default: the reference model's step")
    replays = f"number of replays, done twice; {DEFAULT}"
    parser.number("--replays", 1, MAX_STEPS, "N", replays, default=20)
    where = "where the step runs while it is checked; default: where it was captured for"
    parser.add_argument("--device", choices=("cpu", "cuda"), help=where)


def run(args: argparse.Namespace) -> Answer:
    """Verify a step and say how every check went."""
    from ...reference_step import reference_step

    given = None if args.function is None else load_step(args.function)
    try:
        step = given or reference_step()
        step = step if args.device in (None, step.device) else step.on(args.device)
        report = step.verify(args.replays)
    except DgrrError as error:
        raise UsageError(str(error)) from error
    held = f"{len(report.checks) - len(report.failures)} of {len(report.checks)} checks held"
    facts = Fact("ok", report.ok), Fact("checks", report.checks, f"{report}\n{held}")
    return done(*facts) if report.ok else ended(Exit.REPLAY, "failed", *facts)

"""``dgrr fork``: train on from a past step, with something changed, and record it."""

import argparse
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .....base import system
from .....base.errors import DgrrError, NonFiniteError
from ....exit_codes import Exit
from ....file_version import TraceFileError
from ....v2.errors import NotRecordedError, TraceWriteError
from ....v2.format.constants import PARTIAL_SUFFIX
from ...answer import Answer, Fact, done, failed, untold
from ...arguments import MAX_STEPS, Parser, UsageError, setting
from ...formats import require_answer
from ...loading import called, guarded

if TYPE_CHECKING:
    from .....runtime.optim.groups import Optimizer
    from ....replaying.continued import Continuation
    from ....replaying.edited import Edits
    from ....replaying.travel import PastStep

HELP = """
Train on from a past step, with changes, and record it.

MODULE is in the current folder, or installed.

examples:
  dgrr fork run.dgrr --step 100 --steps 50 --model train:run --set lr=0.01 -o slower.dgrr
  dgrr fork run.dgrr --step 100 --steps 50 --model train:run --optimizer train:sgd -o sgd.dgrr
  dgrr fork run.dgrr --step 100 --steps 50 --model train:run --edit '"0.weight" = 0' -o zero.dgrr
  dgrr fork run.dgrr --step 100 --steps 50 --model train:run -o same.dgrr   no change: the same bits
"""


def add_arguments(parser: Parser) -> None:
    parser.trace("trace file, which is only read")
    parser.step("train on from the state before this step, from 0", required=True)
    parser.model("function that returns (loss_fn, batches) of the run, from its beginning", required=True)
    parser.number("--steps", 1, MAX_STEPS, "N", "number of steps to train", required=True)
    parser.new_file("new trace to write; its steps count from 0", required=True)
    changed = parser.add_mutually_exclusive_group()
    hyper = "change a hyperparameter of the run's own rule, such as lr=0.01, or lr#1 of its second group"
    changed.add_argument("--set", type=setting, metavar="NAME=VALUE", action="append", default=[], help=hyper)
    optimizer = "function that returns another optimizer"
    changed.add_argument("--optimizer", metavar="MODULE:FUNCTION", help=optimizer)
    parser.edits("change a value of step K")
    parser.rules()
    parser.mode()
    parser.record("the new trace")


def run(args: argparse.Namespace) -> Answer:
    """Rebuild the state before a step, train on from it, and say what came of it."""
    require_answer(args, args.path)
    from ....showing.state import is_written
    from ...v2 import edited, rebuilt

    unfinished = f"{args.out}{PARTIAL_SUFFIX}"
    if os.path.lexists(args.out):
        raise UsageError(f"argument --out: {args.out} already exists")
    if os.path.lexists(unfinished):
        text = f"{unfinished} already exists: its run is unfinished, or still going on"
        raise UsageError(f"argument --out: {text}; choose another name, or remove it")
    try:
        past = rebuilt(args)
        return _forked(past, edited(past, args.edit), args)
    finally:  # a trace that ended has its name; what failed is of no use
        if os.path.lexists(unfinished) and not is_written(unfinished):
            with suppress(OSError):
                system.remove(unfinished)


def _forked(past: "PastStep", edits: "Edits", args: argparse.Namespace) -> Answer:
    optimizer = None if args.optimizer is None else _optimizer(args.optimizer)
    found = guarded(f"argument --model: {args.model}: while training", lambda: _trained(past, edits, optimizer, args))
    if isinstance(found, NonFiniteError):
        return failed(Exit.DIVERGED, f"{args.out}: {found}")
    if isinstance(found, TraceWriteError):
        raise found
    last = past.step + args.steps - 1
    before = _loss_of(past.path, last)
    there = "" if before is None else f"; in {past.path} it is {before!s}"
    numbered = f"steps {past.step} to {last} of {past.path} again, as steps 0 to {args.steps - 1}"
    return done(
        *untold(first=past.step, steps=args.steps),
        Fact("trace", args.out, f"{args.out}: {numbered}; the last loss is {found.losses[-1]!s}{there}"),
        *untold(loss=found.losses[-1], loss_before=before, state_digest=found.state_digest),
    )


def _optimizer(spec: str) -> "Optimizer":
    """The optimizer that ``MODULE:FUNCTION`` returns. Raises UsageError."""
    from .....runtime.optim.groups import require_optimizer

    made = called("--optimizer", spec)
    try:
        return require_optimizer(made)
    except DgrrError as error:
        raise UsageError(f"argument --optimizer: {spec}(): {error}") from None


def _trained(
    past: "PastStep", edits: "Edits", optimizer: "Optimizer | None", args: argparse.Namespace
) -> "Continuation | NonFiniteError | TraceWriteError":
    """What came of it; what is no fault of the command line is handed back too."""
    changed: dict[str, Any] = {"hyper": dict(args.set) or None, "edits": edits}
    try:
        return past.continue_with(optimizer, steps=args.steps, trace=args.out, record=args.record, **changed)
    except (NonFiniteError, TraceWriteError) as error:
        return error
    except (TraceFileError, NotRecordedError):  # what the file says, not the arguments
        raise
    except (ValueError, DgrrError) as error:
        raise UsageError(str(error)) from error


def _loss_of(path: str, step: int) -> float | None:
    """The loss that a trace has of a step, if it has the step."""
    from ....v2.read.reader import open_reader

    with open_reader(path, mode="tolerate_tail") as trace:
        return float(trace[step].loss) if step < len(trace) else None

"""``dgrr fork``: train on from a past step, with something changed, and record it."""

import argparse
import os
from contextlib import suppress

from ...base import system
from ...runtime import NonFiniteError
from ...runtime.optim.groups import Optimizer, require_optimizer
from ...tape import DgrrError
from ..exit_codes import Exit
from ..file_version import TraceFileError
from ..replaying.continued import Continuation
from ..replaying.travel import PastStep
from ..showing.state import is_written
from ..v2.errors import NotRecordedError, TraceWriteError
from ..v2.format.constants import PARTIAL_SUFFIX
from ..v2.read.reader import open_trace
from .answer import Answer, done, failed
from .arguments import UsageError
from .loading import called, guarded
from .travel import from_step


def run(path: str, args: argparse.Namespace) -> Answer:
    """Rebuild the state before a step, train on from it, and say what came of it."""
    unfinished = f"{args.out}{PARTIAL_SUFFIX}"
    if os.path.lexists(args.out):
        raise UsageError(f"argument --out: {args.out} is there already")
    if os.path.lexists(unfinished):
        text = f"{unfinished} is there already, of a run that was not finished or still goes on"
        raise UsageError(f"argument --out: {text}; choose another name, or remove it")
    try:
        return from_step(path, args, lambda past: _forked(past, args))
    finally:  # a trace that ended has its name; what failed is of no use
        if os.path.lexists(unfinished) and not is_written(unfinished):
            with suppress(OSError):
                system.remove(unfinished)


def _forked(past: PastStep, args: argparse.Namespace) -> Answer:
    optimizer = None if args.optimizer is None else _optimizer(args.optimizer)
    found = guarded(f"argument --model: {args.model}: while training", lambda: _trained(past, optimizer, args))
    if isinstance(found, NonFiniteError):
        return failed(Exit.DIVERGED, f"{args.out}: {found}")
    if isinstance(found, TraceWriteError):
        raise found
    last = past.step + args.steps - 1
    before = _loss_of(past.path, last)
    there = "" if before is None else f"; that of {past.path} there is {before!s}"
    result = {
        "first": past.step,
        "steps": args.steps,
        "trace": args.out,
        "loss": found.losses[-1],
        "loss_before": before,
        "state_digest": found.state_digest,
    }
    numbered = f"steps {past.step} to {last} of {past.path} anew, as steps 0 to {args.steps - 1}"
    return done(result, f"{args.out}: {numbered}; the last loss is {found.losses[-1]!s}{there}")


def _optimizer(spec: str) -> Optimizer:
    """The optimizer that ``MODULE:FUNCTION`` returns. Raises UsageError."""
    made = called("--optimizer", spec)
    try:
        return require_optimizer(made)
    except DgrrError as error:
        raise UsageError(f"argument --optimizer: {spec}(): {error}") from None


def _trained(
    past: PastStep, optimizer: Optimizer | None, args: argparse.Namespace
) -> Continuation | NonFiniteError | TraceWriteError:
    """What came of it; what is no fault of the command line is handed back too."""
    hyper = dict(args.set) or None
    try:
        return past.continue_with(optimizer, steps=args.steps, hyper=hyper, trace=args.out, record=args.record)
    except (NonFiniteError, TraceWriteError) as error:
        return error
    except (TraceFileError, NotRecordedError):  # what the file says, not the arguments
        raise
    except (ValueError, DgrrError) as error:
        raise UsageError(str(error)) from error


def _loss_of(path: str, step: int) -> float | None:
    """The loss that a trace has of a step, if it has the step."""
    with open_trace(path, mode="tolerate_tail") as trace:
        return float(trace[step].loss) if step < len(trace) else None

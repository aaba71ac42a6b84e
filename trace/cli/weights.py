"""``dgrr export --format safetensors``: the weights before a step."""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from ...tape import DgrrError, nn
from ..exit_codes import Exit
from ..exporting.weights import Weights, weights_before
from ..replaying.recomputed import RunMode
from ..replaying.replay_state import UnknownRuleError
from ..replaying.travel import RebuildError
from ..v2.errors import NotRecordedError
from ..v2.read.reader import Trace, open_trace
from .answer import Answer, done, failed
from .arguments import UsageError
from .export import require_new, result, tail_missing
from .loading import current_folder, load_run
from .v2 import load_rule


def run(path: str, args: argparse.Namespace) -> Answer:
    """Write the weights before a step, or after the last."""
    require_new(args.out)
    try:
        with open_trace(path, mode="tolerate_tail") as trace:
            return _written(trace, args)
    except ModuleNotFoundError as error:
        raise UsageError(f"argument --format: {error}") from None
    except RebuildError as error:
        return failed(error.finding.verdict.exit_code, f"{path}: {error.finding}", error.finding.verdict.value)
    except (NotRecordedError, UnknownRuleError) as error:
        return failed(Exit.UNPROVEN, f"{path}: {error}")


def _written(trace: Trace, args: argparse.Namespace) -> Answer:
    step = len(trace) if args.step is None else args.step
    if step > len(trace):
        raise UsageError(f"argument --step: {trace.path} has no state before step {step}: expected 0 to {len(trace)}")
    found = _made(trace, step, args.model, args.rule, args.mode or "replay")
    try:
        nn.save(args.out, found.params, found.model_state)
    except DgrrError as error:
        raise UsageError(f"argument --format: {error}") from error
    where = f"before step {step}" if step < len(trace) else "after the last step"
    answer = done(result(args, None, step), f"{args.out}: the weights of {trace.path} {where}")
    return replace(answer, error=tail_missing(trace))


def _made(trace: Trace, step: int, model: str | None, rules: Sequence[str], mode: RunMode) -> Weights:
    loss_fn, batches = (None, None) if model is None else load_run("--model", model)
    classes = [load_rule(rule) for rule in rules]
    with current_folder():  # where the model may import more
        return weights_before(trace, step, loss_fn, batches, rules=classes, mode=mode)

"""``dgrr at``: the tape of a past step, as a table, as the way of one node to the loss, or as a graph."""

import argparse
import os
from collections.abc import Callable, Sequence

from ...tape import DgrrError, TapeError, nn
from ...tape.values.tables import PlainTable
from ..exit_codes import Exit
from ..replaying.recomputed import RunMode
from ..replaying.travel import PastStep, RebuildError, at
from ..v2.errors import NotRecordedError
from ..v2.read.reader import open_trace
from .answer import Answer, done, failed
from .arguments import UsageError
from .loading import current_folder, load_run
from .v2 import load_rule, step_of


def run(path: str, args: argparse.Namespace) -> Answer:
    """Rebuild a step, save the weights before it where that is asked, and show it."""
    if args.save is not None and os.path.lexists(args.save):
        raise UsageError(f"argument --save: {args.save} is there already")
    return from_step(path, args, lambda past: _shown(past, args))


def from_step(path: str, args: argparse.Namespace, answer: Callable[[PastStep], Answer]) -> Answer:
    """What is to be said of the step that is asked for, once it is rebuilt; or why it cannot be rebuilt."""
    try:
        past = _rebuilt(path, args.step, args.model, args.rule, args.mode or "replay")
    except RebuildError as error:
        verdict = error.finding.verdict
        return failed(verdict.exit_code, f"{path}: {error.finding}", verdict.value)
    except NotRecordedError as error:
        return failed(Exit.UNPROVEN, f"{path}: {error}")
    return answer(past)


def _rebuilt(path: str, step: int, model: str, rules: Sequence[str], mode: RunMode) -> PastStep:
    with open_trace(path, mode="tolerate_tail") as trace:
        step_of(trace, step)
        loss_fn, batches = load_run("--model", model)
        classes = [load_rule(rule) for rule in rules]
        try:
            with current_folder():  # where the model may import more
                return at(trace, step, loss_fn, batches, rules=classes, mode=mode)
        except ValueError as error:
            raise UsageError(str(error)) from error


def _shown(past: PastStep, args: argparse.Namespace) -> Answer:
    place: int = args.micro_batch
    if place >= len(past.passes):
        expected = f"expected 0 to {len(past.passes) - 1}, got {place}"
        raise UsageError(f"argument --micro-batch: {expected}: step {past.step} has {len(past.passes)} of them")
    made = past.passes[place]
    dot = made.tape.to_dot(made.dense) if args.dot else None
    table = _table(past, place, args.explain) if dot is None else None
    _save(past, args.save)
    result = {
        "step": past.step,
        "keyframe": past.keyframe,
        "loss": past.loss,
        "micro_batches": len(past.passes),
        "title": None if table is None else table.title,
        "rows": [] if table is None else table.to_dicts(),
        "dot": dot,
        "saved": args.save,
    }
    lines = [f"{past.path}: step {past.step}, loss {past.loss!s}, rebuilt from the state before step {past.keyframe}"]
    lines += [] if args.save is None else [f"{args.save}: the weights before step {past.step}"]
    shown = "\n".join(lines) if table is None else "\n".join([*lines, table.to_string()])
    return done(result, dot or shown)


def _table(past: PastStep, place: int, explain: str | None) -> PlainTable:
    if explain is None:
        return past.table(place)
    made = past.passes[place]
    node: str | int = int(explain) if explain.isdecimal() else explain
    try:
        return made.tape.explain(node, made.dense)
    except TapeError as error:
        raise UsageError(f"argument --explain: {error}") from error


def _save(past: PastStep, path: str | None) -> None:
    if path is None:
        return
    try:
        nn.save(path, past.params, past.model_state)
    except (DgrrError, ModuleNotFoundError) as error:
        raise UsageError(f"argument --save: {error}") from error

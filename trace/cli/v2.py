"""What `dgrr` answers for traces of version 2."""

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..comparing.compare import compare as compare_traces
from ..comparing.result import Comparison
from ..replaying.expected import Expected
from ..replaying.validate import held
from ..v2.check.report import Report
from ..v2.check.validate import validate_v2
from ..v2.errors import NotRecordedError
from ..v2.read.reader import TraceReader, open_reader
from ..v2.repair.rollback import rollback_v2
from .answer import Answer, Fact, cut_before, done, judged, listed, part
from .arguments import UsageError
from .inspection import state_before, step_facts, step_of, trace_facts
from .loading import guarded, load_function, load_rules, load_run, users_code

if TYPE_CHECKING:
    from ..replaying.edited import Edits
    from ..replaying.travel import PastStep


def validate(args: argparse.Namespace) -> Answer:
    """Check structure, chains and digests of a trace."""
    return _reported(held(validate_v2(args.paths[0]), _expected(args), args.expect_root))


def replay(args: argparse.Namespace) -> Answer:
    """Recompute every update, with a model every gradient too; then show a step."""
    from ..replaying.replay import replay as recompute  # compiled, and so loaded only where it is needed

    path, step, expected = args.paths[0], args.step, _expected(args)
    if step is not None:
        with open_reader(path, mode="tolerate_tail") as trace:
            step_of(trace, step)
    loss_fn, batches = (None, None) if args.model is None else load_run(args.model)
    known: dict[str, Any] = {"steps": expected.steps, "expect_start": expected.start, "expect_rules": expected.rules}
    known |= {"seed": args.seed, "numerics": args.numerics, "expect_root": args.expect_root}
    how: dict[str, Any] = {"ulp_tol": args.ulp_tol, "mode": args.mode or "replay", "rules": load_rules(args.rule)}
    with users_code():
        report = recompute(path, loss_fn=loss_fn, batches=batches, progress=True, **known, **how)
    if step is None or not report.ok:
        return _reported(report, Fact("step", None))
    with open_reader(path, mode="tolerate_tail") as trace:
        return _reported(report, _shown(trace, step))


def _expected(args: argparse.Namespace) -> Expected:
    """What a run is known to have but its seed and numerics version."""
    return Expected(steps=args.steps, start=args.expect_start, rules=tuple(args.expect_rule))


def _reported(report: Report, *more: Fact) -> Answer:
    return judged(report, Fact("report", report), *more, answers=report.ok)


def _shown(trace: TraceReader, step: int) -> Fact:
    return part("step", step_facts(trace, step_of(trace, step)))


def inspect(args: argparse.Namespace) -> Answer:
    """Show header, schema and, of one step, everything that is recorded."""
    with open_reader(args.paths[0], mode="tolerate_tail") as trace:
        whole = part("trace", trace_facts(trace))
        if args.step is None:
            return done(whole, Fact("step", None))
        return done(whole._replace(text=""), _shown(trace, args.step))


def rollback(args: argparse.Namespace) -> Answer:
    """Show the state before a step; write the steps before it to a new trace."""
    path, step, out = args.paths[0], args.step, args.out
    with open_reader(path, mode="tolerate_tail") as trace:
        steps, state = len(trace), {} if step > len(trace) else state_before(trace, step)
    if step > steps:
        raise UsageError(f"argument --step: {path} has no state before step {step}: expected 0 to {steps}")
    if out is not None:
        _write_child(path, step, out)
    digests = [f"{name} {digest.hex()}" for name, digest in state.items()] or ["its digests are not recorded here"]
    kept = f"steps 0 to {step - 1}" if step else "the initial state"
    written = f"{out}: {kept}; {path} is unchanged" if out else f"nothing is written; --out PATH would hold {kept}"
    return done(*cut_before(path, step, steps), Fact("state", state, listed(digests)), Fact("written", out, written))


def _write_child(path: str, step: int, out: str) -> None:
    try:
        rollback_v2(path, step, out)
    except ValueError as error:
        raise UsageError(f"argument --out: {error}") from None


def compare(args: argparse.Namespace, policy: str) -> Answer:
    """Show where two traces part first, why, and by how much."""
    a, b = args.paths
    return _compared(compare_traces(a, b, policy=policy, proven=args.proven))


def compare_with_model(args: argparse.Namespace, compared: Callable[..., Comparison]) -> Answer:
    """Show where a trace parts from what its model computes now."""
    path: str = args.paths[0]
    rules = load_rules(args.rule)
    loss_fn, batches = load_run(args.model)
    damage = compare_traces(path, path, proven=True) if args.proven else None
    if damage is not None and not damage:
        return _compared(damage)

    def computed() -> Comparison:
        try:
            return compared(path, loss_fn, batches, rules=rules, mode=args.mode or "replay")
        except NotRecordedError as error:
            raise UsageError(f"argument --model: {error}") from error

    return _compared(guarded(f"argument --model: {args.model}: while computing", computed))


def compare_with_training(args: argparse.Namespace, options: Sequence[str]) -> Answer:
    """Show the first op by which two runs of PyTorch part, of which one may be trained now."""
    from ..frameworks.bisect_torch import bisect_torch

    specs = {option: (f"--{option.replace('_', '-')}", getattr(args, option)) for option in options}
    trains = {option: load_function(*spec) for option, spec in specs.items()}
    said = " and ".join(f"argument {name}: {spec}" for name, spec in specs.values())

    def trained() -> Comparison:
        return bisect_torch(*args.paths, train_a=trains.get("train_a"), train_b=trains.get("train_b"))

    return _compared(guarded(f"{said}: while training", trained))


def rebuilt(args: argparse.Namespace) -> "PastStep":
    """The step that is asked for, as it was before its update. Raises UsageError, RebuildError, NotRecordedError."""
    from ..replaying.travel import at  # compiled, likewise

    with open_reader(args.path, mode="tolerate_tail") as trace:
        step_of(trace, args.step)
        loss_fn, batches = load_run(args.model)
        rules = load_rules(args.rule)
        with users_code():
            return at(trace, args.step, loss_fn, batches, rules=rules, mode=args.mode or "replay")


def edited(past: "PastStep", texts: Sequence[str]) -> "Edits":
    """What ``--edit`` changes in a step. Raises UsageError."""
    from ..watching.edits import edits_of, read_edit
    from ..watching.expression import ConditionError

    try:
        return edits_of([read_edit(text) for text in texts], past)
    except ConditionError as error:
        raise UsageError(f"argument --edit: {str(error).removeprefix('edit: ')}") from None


def _compared(found: Comparison) -> Answer:
    return judged(found, Fact("comparison", found), answers=found.same or found.cause is not None)

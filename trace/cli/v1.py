"""The commands for traces of version 1: each prints its answer and returns the exit code.

Answers go to standard output; what keeps a command from its answer goes to standard error.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from ..exit_codes import Exit
from ..file_version import TraceFileError
from ..v1.compare import Divergence, first_divergence
from ..v1.inspect import inspection, replayed
from ..v1.layout import Header, Record
from ..v1.reader import TraceReader
from ..v1.report import table, three_ways
from ..v1.train import attempted_step, train as run_training
from ..v1.validation.validate import Validation, require_valid
from ..v1.writer import TraceWriter, partial_path

P = ParamSpec("P")


def _command(body: Callable[P, Exit]) -> Callable[P, int]:
    """Turn a `TraceFileError` of the body into its text on standard error and its exit code."""

    @wraps(body)
    def command(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return body(*args, **kwargs)
        except TraceFileError as error:
            print(f"dgrr: {error}", file=sys.stderr)
            return error.exit

    return command


def _require_step(trace: TraceReader, header: Header, step: int) -> None:
    if step >= header.step_count:
        steps = f"it has steps 0 to {header.step_count - 1}" if header.step_count else "it has no steps"
        raise TraceFileError(f"argument --step: {trace.path} has no step {step}: {steps}", Exit.USAGE)


def _losses(total: float, steps: int) -> str:
    return f"total {total!r}, mean {total / steps!r}" if steps else "none"


def _about(steps: int, seed: int, learning_rate: float) -> str:
    return f"{steps} steps, seed {seed}, learning rate {learning_rate!r}"


@_command
def train(steps: int, lr: float, seed: int, out: str, created_at: int) -> Exit:
    """Train for `steps` steps with learning rate `lr` on the data of `seed`, and write the trace to `out`.

    Codes: OK; DIVERGED where a value was not finite, with the steps before it in the trace; IO.
    """
    with TraceWriter(out, seed, lr, created_at) as writer:
        trained = run_training(writer, steps, lr, seed)
        writer.seal()
    rows = [("w", three_ways(trained.w)), ("b", three_ways(trained.b))]
    print(f"{out}: {_about(trained.step_count, seed, lr)}")
    print(table([*rows, ("loss", _losses(trained.loss_total, trained.step_count))]))
    if trained.step_count == steps:
        return Exit.OK
    values = attempted_step(trained, lr, seed)
    named = ", ".join(f"{name} is {value!r}" for name, value in values.items() if value - value != 0)
    raise TraceFileError(
        f"training stopped: step {trained.step_count} is not finite ({named}); "
        f"{out} holds the steps before it; try a smaller --lr",
        Exit.DIVERGED,
    )


@_command
def validate(path: str) -> Exit:
    """Check every rule of the format over the whole file. Codes: OK, IO, VALIDATION, REPLAY."""
    with TraceReader(path) as trace:
        validation = require_valid(trace)
    header = validation.header
    print(f"{path}: valid, {_about(header.step_count, header.seed, header.learning_rate)}")
    losses = _losses(validation.loss_total, header.step_count)
    print(table([("loss", losses), ("re-execution", validation.reexecution)]))
    return Exit.OK


@_command
def replay(path: str, step: int, ulp_tol: int) -> Exit:
    """Recompute every update and show that of `step`. Codes: OK, USAGE, IO, VALIDATION, REPLAY."""
    with TraceReader(path) as trace:
        header = require_valid(trace, ulp_tol).header
        _require_step(trace, header, step)
        record = Record.unpack(trace.record(step))
    print(f"{path}: step {step} replayed, and with it the chain 0..{step}; allowed distance {ulp_tol} ULP")
    print(replayed(header, record))
    return Exit.OK


@_command
def inspect(path: str, step: int) -> Exit:
    """Show all that is recorded of `step`. Codes: OK, USAGE, IO, VALIDATION, REPLAY."""
    with TraceReader(path) as trace:
        header = require_valid(trace).header
        _require_step(trace, header, step)
        print(inspection(header, step, trace.record(step)))
    return Exit.OK


def _refuse_own_input(path: str, out: str) -> None:
    """Keep `out`, or the name it is written under, from being the trace that is read."""
    for target in (out, partial_path(out)):
        if os.path.exists(target) and os.path.samefile(path, target):
            raise TraceFileError(f"argument --out: writing {out} would destroy the trace itself", Exit.USAGE)


def _write_prefix(trace: TraceReader, header: Header, steps: int, out: str) -> None:
    with TraceWriter(out, header.seed, header.learning_rate, header.created_at) as writer:
        for records in trace.blocks(steps):
            writer.append(records)
        trace.check_size()
        writer.seal()


@_command
def rollback(path: str, step: int, out: str | None) -> Exit:
    """Show the state before `step`; write the trace of the steps before it to `out`, if that is given.

    Codes: OK, USAGE, IO, VALIDATION, REPLAY.
    """
    with TraceReader(path) as trace:
        if out is not None:
            _refuse_own_input(path, out)
        header = require_valid(trace).header
        _require_step(trace, header, step)
        record = Record.unpack(trace.record(step))
        if out is not None:
            _write_prefix(trace, header, step, out)
    print(f"{path}: state before step {step}; {header.step_count - step} of {header.step_count} steps discarded")
    print(table([("w", three_ways(record.w_before)), ("b", three_ways(record.b_before))]))
    if out is not None:
        print(f"{out}: {step} steps")
    return Exit.OK


def _header_differences(a: Validation, b: Validation) -> list[str]:
    values: dict[str, tuple[float, float]] = {
        "seed": (a.header.seed, b.header.seed),
        "learning_rate": (a.header.learning_rate, b.header.learning_rate),
    }
    return [f"{name} differs: {left!r} and {right!r}" for name, (left, right) in values.items() if left != right]


def _divergence_text(found: Divergence, ulp_tol: int) -> str:
    rows = [("a", three_ways(found.a)), ("b", three_ways(found.b))]
    distance = ("distance", f"{found.ulps} ULP, allowed {ulp_tol}")
    return f"first difference: step {found.step}, {found.field}\n{table([*rows, distance])}"


@_command
def compare(a: str, b: str, ulp_tol: int) -> Exit:
    """Find the first step where w_after, b_after or loss differ by more than `ulp_tol`.

    Codes: OK, IO, VALIDATION, REPLAY, DIVERGED.
    """
    with TraceReader(a) as left, TraceReader(b) as right:
        validations = require_valid(left), require_valid(right)
        found = first_divergence(left, right, ulp_tol)
        left.check_size()
        right.check_size()
    for difference in _header_differences(*validations):
        print(difference)
    if found is not None:
        print(_divergence_text(found, ulp_tol))
        return Exit.DIVERGED
    counts = [validation.header.step_count for validation in validations]
    if counts[0] != counts[1]:
        lengths = f"{counts[0]} and {counts[1]} steps"
        print(f"first difference: step {min(counts)}, where the shorter trace ends ({lengths})")
        return Exit.DIVERGED
    print(f"{counts[0]} steps agree within {ulp_tol} ULP")
    return Exit.OK

"""What `dgrr` answers for traces of version 1: files that are not valid are refused by every command."""

import argparse
import os
from typing import Any

from ..comparing.policy import Policy
from ..exit_codes import Exit
from ..file_version import TraceFileError
from ..replaying.validate import report_v1
from ..v1.compare import Divergence, first_divergence
from ..v1.inspect import inspection, replayed
from ..v1.layout import HeaderV1, Record
from ..v1.reader import TraceReaderV1
from ..v1.report import about, losses, table, three_ways
from ..v1.validation.validate import Validation, require_valid, validate as checked
from ..v1.writer import WriterV1, partial_path
from .answer import Answer, Fact, cut_before, done, ended
from .arguments import UsageError


def _require_step(trace: TraceReaderV1, header: HeaderV1, step: int) -> None:
    if step >= header.step_count:
        steps = f"it has steps 0 to {header.step_count - 1}" if header.step_count else "it has no steps"
        raise UsageError(f"argument --step: {trace.path} has no step {step}: {steps}")


def validate(args: argparse.Namespace) -> Answer:
    """Check every rule of the format over the whole file. Codes: OK, IO, VALIDATION, REPLAY."""
    path = args.paths[0]
    with TraceReaderV1(path) as trace:
        validation = checked(trace)
    report, header = report_v1(validation), validation.header
    if validation.failures:
        text = validation.failure_text()
        return ended(report.exit_code, report.verdict.value, Fact("report", report), error=text)
    total = losses(validation.loss_total, header.step_count)
    head = f"{path}: valid, {about(header.step_count, header.seed, header.learning_rate)}"
    rows = [("loss", total), ("re-execution", validation.reexecution)]
    return done(Fact("report", report, f"{head}\n{table(rows)}"))


def replay(args: argparse.Namespace) -> Answer:
    """Recompute every update and show that of one step. Codes: OK, USAGE, IO, VALIDATION, REPLAY.

    `--seed` is the one that the run is known to have; another in the header is a failure.
    """
    path, step, ulp_tol, seed = args.paths[0], args.step, args.ulp_tol, args.seed
    with TraceReaderV1(path) as trace:
        validation = require_valid(trace, ulp_tol)
        header = validation.header
        _require_step(trace, header, step)
        record = Record.unpack(trace.record(step))
    if seed not in (None, header.seed):
        raise TraceFileError(f"{path}: seed: expected {seed}, the trace says {header.seed}", Exit.REPLAY)
    replayed_text = f"step {step} replayed, and with it the chain 0..{step}; allowed distance {ulp_tol} ULP"
    report = Fact("report", report_v1(validation), f"{path}: {replayed_text}")
    return done(report, Fact("step", _record_dict(record), replayed(header, record)))


def inspect(args: argparse.Namespace) -> Answer:
    """Show all that is recorded of a step. Codes: OK, USAGE, IO, VALIDATION, REPLAY."""
    path, step = args.paths[0], args.step
    with TraceReaderV1(path) as trace:
        header = require_valid(trace).header
        _require_step(trace, header, step)
        raw = trace.record(step)
    shown = Fact("step", _record_dict(Record.unpack(raw)), inspection(header, step, raw))
    return done(Fact("trace", _header_dict(path, header)), shown)


def _header_dict(path: str, header: HeaderV1) -> dict[str, Any]:
    return {
        "path": path,
        "version": 1,
        "steps": header.step_count,
        "seed": header.seed,
        "learning_rate": header.learning_rate,
        "created_at": header.created_at,
    }


def _record_dict(record: Record) -> dict[str, Any]:
    fields = record._asdict()
    return {"step": fields.pop("step_id"), **{k: v for k, v in fields.items() if k not in ("record_crc32", "pad0")}}


def _refuse_own_input(path: str, out: str) -> None:
    """Keep `out`, or the name it is written under, from being the trace that is read."""
    for target in (out, partial_path(out)):
        if os.path.exists(target) and os.path.samefile(path, target):
            raise UsageError(f"argument --out: writing {out} would destroy the trace itself")


def _write_prefix(trace: TraceReaderV1, header: HeaderV1, steps: int, out: str) -> None:
    with WriterV1(out, header.seed, header.learning_rate, header.created_at) as writer:
        for records in trace.blocks(steps):
            writer.append(records)
        trace.check_size()
        writer.seal()


def rollback(args: argparse.Namespace) -> Answer:
    """Show the state before a step; write the steps before it to a trace. Codes: OK, USAGE, IO, VALIDATION, REPLAY."""
    path, step, out = args.paths[0], args.step, args.out
    with TraceReaderV1(path) as trace:
        if out is not None:
            _refuse_own_input(path, out)
        header = require_valid(trace).header
        _require_step(trace, header, step)
        record = Record.unpack(trace.record(step))
        if out is not None:
            _write_prefix(trace, header, step, out)
    state = {"w": record.w_before, "b": record.b_before}
    written = f"nothing is written; --out PATH would hold {step} steps" if out is None else f"{out}: {step} steps"
    return done(
        *cut_before(path, step, header.step_count),
        Fact("state", state, table((name, three_ways(value)) for name, value in state.items())),
        Fact("written", out, written),
    )


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


def compare(args: argparse.Namespace, policy: str) -> Answer:
    """Find the first step where w_after, b_after or loss differ. Codes: OK, IO, VALIDATION, REPLAY, DIVERGED."""
    a, b = args.paths
    tolerance = Policy.parse(policy).of("")
    if not tolerance.bitwise and tolerance.ulp is None:
        args.parser.error(f"argument --policy: {a} is of version 1: expected bitwise or ulp=N, got {policy!r}")
    ulp_tol = tolerance.ulp or 0
    with TraceReaderV1(a) as left, TraceReaderV1(b) as right:
        validations = require_valid(left), require_valid(right)
        found = first_divergence(left, right, ulp_tol)
        left.check_size()
        right.check_size()
    counts = [validation.header.step_count for validation in validations]
    lines = _header_differences(*validations)
    same = found is None and counts[0] == counts[1]
    if found is not None:
        lines.append(_divergence_text(found, ulp_tol))
    elif not same:
        lengths = f"{counts[0]} and {counts[1]} steps"
        lines.append(f"first difference: step {min(counts)}, where the shorter trace ends ({lengths})")
    else:
        lines.append(f"{counts[0]} steps agree within {ulp_tol} ULP")
    result = Fact("comparison", {"a": a, "b": b, "same": same, **_where(found, counts)}, "\n".join(lines))
    return done(result) if same else ended(Exit.DIVERGED, "diverged", result)


def _where(found: Divergence | None, counts: list[int]) -> dict[str, Any]:
    """The first difference in plain types: its step, and the field with both values, if it has any."""
    if found is not None:
        return {"step": found.step, "field": found.field, "values": [found.a, found.b], "ulp": found.ulps}
    step = None if counts[0] == counts[1] else min(counts)
    return {"step": step, "field": None, "values": None, "ulp": None}

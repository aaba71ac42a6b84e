"""What `dgrr` answers for traces of version 2."""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal

from ..comparing.compare import compare as compare_traces
from ..comparing.result import Comparison
from ..replaying.expected import Expected
from ..replaying.validate import held
from ..v2.check.report import Report
from ..v2.check.validate import validate_v2
from ..v2.errors import NotRecordedError
from ..v2.read.reader import StepView, Trace, open_trace
from ..v2.write.recover import recover as write_whole
from ..v2.write.rollback import rollback_v2
from .answer import Answer, done
from .arguments import UsageError
from .inspection import state_before, step_dict, step_lines, trace_dict, trace_lines
from .loading import current_folder, described, guarded, load, load_run

if TYPE_CHECKING:
    from ...runtime.optim import Rule


def validate(path: str, expect_root: str | None, expected: Expected) -> Answer:
    """Check structure, chains and digests of a trace."""
    return _reported(held(validate_v2(path), expected, expect_root), {})


def replay(
    path: str,
    *,
    step: int | None = None,
    ulp_tol: int = 0,
    model: str | None = None,
    mode: Literal["replay", "eager"] = "replay",
    rules: Sequence[str] = (),
    seed: int | None = None,
    numerics: int | None = None,
    expect_root: str | None = None,
    expected: Expected,
) -> Answer:
    """Recompute every update, with a model every gradient too; then show `step`."""
    from ..replaying.replay import replay as recompute  # compiled, and so loaded only where it is needed

    if step is not None:
        with open_trace(path, mode="tolerate_tail") as trace:
            step_of(trace, step)
    loss_fn, batches = (None, None) if model is None else load_run("--model", model)
    classes = [load_rule(rule) for rule in rules]

    known = partial(recompute, seed=seed, numerics=numerics, expect_root=expect_root, progress=True)
    known = partial(known, steps=expected.steps, expect_start=expected.start, expect_rules=expected.rules)
    try:
        with current_folder():  # where the model may import more
            report = known(path, loss_fn=loss_fn, batches=batches, ulp_tol=ulp_tol, mode=mode, rules=classes)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return _replayed(report, step) if report.ok and step is not None else _reported(report, {"step": None})


def load_rule(spec: str) -> "type[Rule]":
    """The class of rules that ``MODULE:NAME`` names. Raises UsageError."""
    from ..replaying.replay_state import is_rule

    found = load("--rule", spec, "NAME")
    if not is_rule(found):
        expected = "expected a class of rules, as ops_rule makes it"
        raise UsageError(f"argument --rule: {spec}: {expected}, got {described(found)}")
    return found


def _reported(report: Report, more: Mapping[str, object]) -> Answer:
    stream = {"text" if report.ok else "error": str(report)}
    result = {"report": report.to_dict(), **more}
    return Answer(report.exit_code, report.verdict.value, result, **stream, before="")


def _replayed(report: Report, step: int) -> Answer:
    """A report, and a step that is shown with it."""
    with open_trace(report.path, mode="tolerate_tail") as trace:
        view = step_of(trace, step)
        lines = [str(report), *step_lines(trace, view)]
        return done({"report": report.to_dict(), "step": step_dict(view)}, "\n".join(lines))


def inspect(path: str, step: int | None) -> Answer:
    """Show header, schema and, of one step, everything that is recorded."""
    with open_trace(path, mode="tolerate_tail") as trace:
        if step is None:
            return done({"trace": trace_dict(trace), "step": None}, "\n".join(trace_lines(trace)))
        view = step_of(trace, step)
        return done({"trace": trace_dict(trace), "step": step_dict(view)}, "\n".join(step_lines(trace, view)))


def rollback(path: str, step: int, out: str | None) -> Answer:
    """Show the state before `step`; write the steps before it to the trace `out`, if that is given."""
    with open_trace(path, mode="tolerate_tail") as trace:
        steps, state = len(trace), {} if step > len(trace) else state_before(trace, step)
    if step > steps:
        raise UsageError(f"argument --step: {path} has no state before step {step}: expected 0 to {steps}")
    if out is not None:
        _write_child(path, step, out)
    lines = [f"{path}: state before step {step}; {steps - step} of {steps} steps discarded"]
    lines += [f"  {name} {digest.hex()}" for name, digest in state.items()] or ["  its digests are not recorded here"]
    kept = f"steps 0 to {step - 1}" if step else "the initial state"
    lines.append(f"{out}: {kept}; {path} is unchanged" if out else f"nothing is written; --out PATH would hold {kept}")
    result = {"step": step, "kept": step, "discarded": steps - step, "written": out, "state": state}
    return done(result, "\n".join(lines))


def _write_child(path: str, step: int, out: str) -> None:
    try:
        rollback_v2(path, step, out)
    except ValueError as error:
        raise UsageError(f"argument --out: {error}") from None


def recover(paths: Sequence[str], out: str) -> Answer:
    """Write what is whole of a trace, or of the halves of one, to `out`, and say what that is."""
    try:
        found = write_whole(paths, out)
    except ValueError as error:
        argument = "PATH" if "argument 'path'" in str(error) else "--out"
        raise UsageError(f"argument {argument}: {error}") from None
    stream = {"error" if found.lossy else "text": str(found)}
    return Answer(found.exit_code, found.verdict.value, {"recovery": found.to_dict()}, **stream, before="")


def compare(a: str, b: str, policy: str, *, proven: bool) -> Answer:
    """Show where two traces part first, why, and by how much."""
    return _compared(compare_traces(a, b, policy=policy, proven=proven))


def compare_model(
    path: str, policy: str, model: str, rules: Sequence[str], mode: str | None, *, proven: bool
) -> Answer:
    """Show where a trace parts from what its model computes now."""
    from ..comparing.with_model import diff_with_model  # compiled, and so loaded only where it is needed

    return _with_model(partial(diff_with_model, policy=policy), path, model, rules, mode, proven=proven)


def bisect_model(path: str, model: str, rules: Sequence[str], mode: str | None, *, proven: bool) -> Answer:
    """Show a step of a trace that its model computes otherwise now, from as few computed steps as find it."""
    from ..comparing.bisect_model import bisect_with_model  # compiled, likewise

    with _no_bytecode():
        return _with_model(bisect_with_model, path, model, rules, mode, proven=proven)


@contextmanager
def _no_bytecode() -> Generator[None]:
    """Leave no bytecode of a user's modules: it is told apart from that of another commit by seconds and sizes."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _with_model(
    compared: Callable[..., Comparison],
    path: str,
    model: str,
    rules: Sequence[str],
    mode: str | None,
    *,
    proven: bool,
) -> Answer:
    classes = [load_rule(rule) for rule in rules]
    loss_fn, batches = load_run("--model", model)
    damage = compare_traces(path, path, proven=True) if proven else None
    if damage is not None and not damage:
        return _compared(damage)

    def computed() -> Comparison:
        try:
            return compared(path, loss_fn, batches, rules=classes, mode=mode or "replay")
        except NotRecordedError as error:
            raise UsageError(f"argument --model: {error}") from error

    return _compared(guarded(f"argument --model: {model}: while computing", computed))


def _compared(found: Comparison) -> Answer:
    stream = {"text" if found.same or found.cause is not None else "error": str(found)}
    return Answer(found.verdict.exit_code, found.verdict.value, {"comparison": found.to_dict()}, **stream, before="")


def step_of(trace: Trace, step: int) -> StepView:
    """A step of a trace. Raises UsageError where there is no such step."""
    if step >= len(trace):
        there = f"it has steps 0 to {len(trace) - 1}" if len(trace) else "it has no steps"
        raise UsageError(f"argument --step: {trace.path} has no step {step}: {there}")
    return trace[step]

"""What `dgrr` prints for traces of version 2. Every command returns its exit code; errors go to stderr."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec

from ...ulp import exact
from ..comparing.compare import compare as compared
from ..exit_codes import Exit
from ..file_version import TraceFileError
from ..v2.check.report import Report
from ..v2.check.validate import validate_v2
from ..v2.errors import TraceWriteError
from ..v2.read.reader import Trace, open_trace
from ..v2.write.rollback import rollback_v2

P = ParamSpec("P")


def _command(body: Callable[P, int]) -> Callable[P, int]:
    """Turn the errors of a command into a text on stderr and an exit code."""

    def command(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return body(*args, **kwargs)
        except TraceFileError as error:
            return _fail(str(error), error.exit)
        except TraceWriteError as error:
            return _fail(str(error), Exit.IO)
        except (ValueError, IndexError) as error:
            return _fail(str(error), Exit.USAGE)

    command.__doc__ = body.__doc__
    return command


def _fail(text: str, code: Exit) -> int:
    print(f"dgrr: error: {text}", file=sys.stderr)
    return code


def _answer(report: Report) -> int:
    print(report, file=sys.stdout if report.ok else sys.stderr)
    return report.exit_code


@_command
def validate(path: str) -> int:
    """Check structure, chains and digests of a trace."""
    return _answer(validate_v2(path))


@_command
def replay(path: str, step: int | None, ulp_tol: int, model: str | None, rules: Sequence[str] = ()) -> int:
    """Recompute every update, with a model every gradient too; then show `step`."""
    from ..replaying.replay import replay as recompute  # compiled, and so loaded only where it is needed

    if step is not None:
        _require_step(path, step)
    loss_fn, batches = (None, None) if model is None else _load("--model", model, "FUNCTION")()
    classes = [_load("--rule", rule, "NAME") for rule in rules]
    code = _answer(recompute(path, loss_fn=loss_fn, batches=batches, ulp_tol=ulp_tol, rules=classes))
    if code == Exit.OK and step is not None:
        return inspect(path, step)
    return code


def _load(option: str, spec: str, what: str) -> Any:
    """What an option names; modules are also looked for in the current folder."""
    module, colon, name = spec.partition(":")
    if not (module and colon and name):
        raise ValueError(f"{option}: expected MODULE:{what}, got {spec!r}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{option} {spec}: cannot be loaded: {error}") from error
    finally:
        sys.path.pop(0)


@_command
def inspect(path: str, step: int | None) -> int:
    """Show header, schema and, of one step, everything that is recorded."""
    with open_trace(path, mode="tolerate_tail") as trace:
        if step is None:
            print("\n".join(_trace_lines(trace)))
        else:
            print("\n".join(_step_lines(trace, step)))
    return Exit.OK


def _trace_lines(trace: Trace) -> list[str]:
    header = trace.header
    lines = [
        f"{trace.path}: version 2, {len(trace)} steps, {'sealed' if trace.sealed else 'unsealed'}",
        f"  record mode {header.mode.name.lower()}, digest {header.algorithm.name}, state every "
        f"{header.state_every} steps, numerics {header.numerics}, seed {header.seed}",
    ]
    if header.parent_steps:
        lines.append(f"  {header.parent_steps} steps taken over from {header.parent_root.hex()}")
    lines += [f"  rule {group.rule} ({', '.join(group.hyperparameters)})" for group in trace.schema.groups]
    lines += [
        f"  {spec.role.name.lower():<6} {spec.dtype:<4} {spec.shape!s:<16} {spec.name}" for spec in trace.schema.tensors
    ]
    lines += [f"  after {steps} steps, {event.kind}: {event.text}" for steps, event in trace.events()]
    return lines


def _step_lines(trace: Trace, step: int) -> list[str]:
    view = trace[step]
    lines = [f"{trace.path}: step {view.step}", f"  loss {exact(view.loss)}"]
    lines += [f"  {name} {value!r} ({value.hex()})" for name, value in view.hyper.items()]
    lines += [f"  correction {value!r} ({value.hex()})" for value in view.corrections]
    if view.clip is not None:
        lines.append(f"  clipped at {view.clip[0]!r}, scale {view.clip[1]!r}")
    lines += [f"  micro-batches {view.micro_batches}", f"  batch {view.input_digest.hex()}"]
    lines += [
        f"  gradient {name}: {digest.hex()}{_range(trace, name, view.step)}"
        for name, digest in view.grad_digests.items()
    ]
    lines += [f"  state {name}: {digest.hex()}" for name, digest in view.state_digests.items()]
    lines.append(f"  state root {view.root.hex() if view.root else 'not recorded at this step'}")
    lines.append(f"  link {view.link.hex()}")
    return lines


def _range(trace: Trace, name: str, step: int) -> str:
    if not trace.header.mode.has_gradients:
        return ""
    grad = trace.tensor(name, step=step)
    return f" ({grad.min()} to {grad.max()})" if grad.size else ""


@_command
def rollback(path: str, step: int, out: str | None) -> int:
    """Write the steps before `step` to a child trace."""
    source = Path(path)
    child = out or str(source.with_name(f"{source.stem}.before-{step}{source.suffix}"))
    discarded = rollback_v2(path, step, child)
    print(f"{child}: steps 0 to {step - 1} of {path}" if step else f"{child}: the initial state of {path}")
    print(f"  {discarded} steps left out; {path} is unchanged")
    return Exit.OK


def compare(a: str, b: str, ulp_tol: int) -> int:
    """Show the first divergent step of two traces."""
    found = compared(a, b, policy=f"ulp={ulp_tol}" if ulp_tol else "bitwise")
    readable = found.same or found.cause is not None
    print(found, file=sys.stdout if readable else sys.stderr)
    return found.verdict.exit_code


def _require_step(path: str, step: int) -> None:
    with open_trace(path, mode="tolerate_tail") as trace:
        if not 0 <= step < len(trace):
            raise ValueError(f"--step: expected 0 to {len(trace) - 1}, got {step}")

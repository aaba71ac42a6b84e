"""What a trace of version 2 and its steps are shown as: lines for people, plain types for programs."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from ...base.ulp import exact
from ..told import as_text
from ..v2.errors import NotRecordedError
from ..v2.read.reader import StepView, TraceReader
from .arguments import UsageError

_LAST = 8
"""Calls of ops that are shown of a step that has no end."""


def trace_lines(trace: TraceReader) -> list[str]:
    """Header, schema and events."""
    header = trace.header
    lines = [
        f"{trace.path}: version 2, {len(trace)} steps, {'sealed' if trace.sealed else 'unsealed'}",
        f"  record mode {header.mode.name.lower()}, digest {header.algorithm.name}, state every "
        f"{header.state_every} steps, numerics {header.numerics}, seed {header.seed}",
    ]
    if header.parent_steps:
        lines.append(f"  {header.parent_steps} steps taken over from {header.parent_root.hex()}")
    lines.append(f"  {_keyframes(trace.keyframes, len(trace))}")
    lines += [f"  rule {group.rule} ({', '.join(group.hyperparameters)})" for group in trace.schema.groups]
    lines += [
        f"  {spec.role.name.lower():<6} {spec.dtype:<4} {spec.shape!s:<16} {spec.name}" for spec in trace.schema.tensors
    ]
    lines += [f"  after {steps} steps, {event.kind}: {event.text}" for steps, event in trace.events()]
    for steps, noted in trace.noted():
        told = {"notes": noted.notes, "host": noted.host, "time": noted.time}
        lines += [f"  after {steps} steps, {name}: {as_text(value)}" for name, value in told.items()]
    return lines + _unfinished(trace)


def _unfinished(trace: TraceReader) -> list[str]:
    """The last calls of ops of a step at which a run has ended, if it has and they are recorded."""
    calls = () if trace.sealed else trace.calls(len(trace))
    if not calls:
        return []
    last = [f"    {'at work: ' if call.raised else ''}{call.name}, {call.where}" for call in calls[-_LAST:]]
    return [f"  step {len(trace)} has no end; the last of its {len(calls)} calls of ops:", *last]


def trace_dict(trace: TraceReader) -> dict[str, Any]:
    """The same for programs."""
    header, tensors = trace.header, trace.schema.tensors
    return {
        "path": trace.path,
        "version": 2,
        "steps": len(trace),
        "sealed": trace.sealed,
        "mode": header.mode.name.lower(),
        "digest": header.algorithm.name,
        "state_every": header.state_every,
        "numerics": header.numerics,
        "seed": header.seed,
        "created_at": header.created_at,
        "parent_steps": header.parent_steps,
        "parent_root": header.parent_root if header.parent_steps else None,
        "rules": [
            {"rule": g.rule, "hyperparameters": g.hyperparameters, "tensors": [tensors[i].name for i in g.tensors]}
            for g in trace.schema.groups
        ],
        "tensors": [
            {"name": spec.name, "role": spec.role.name.lower(), "dtype": spec.dtype, "shape": spec.shape}
            for spec in tensors
        ],
        "keyframes": trace.keyframes,
        "events": [{"steps": steps, "kind": event.kind, "text": event.text} for steps, event in trace.events()],
        "noted": [{"steps": steps, **asdict(noted)} for steps, noted in trace.noted()],
        "unfinished_calls": () if trace.sealed else trace.calls(len(trace)),
    }


def _keyframes(numbers: Sequence[int], steps: int) -> str:
    """How many there are, and the longest way from one to a step."""
    apart = max((b - a for a, b in pairwise((*numbers, steps))), default=0)
    return f"{len(numbers)} keyframe{'' if len(numbers) == 1 else 's'}, at most {apart} steps apart"


def step_of(trace: TraceReader, step: int, option: str = "--step") -> StepView:
    """A step of a trace, which an option names. Raises UsageError where there is no such step."""
    if step >= len(trace):
        there = f"it has steps 0 to {len(trace) - 1}" if len(trace) else "it has no steps"
        raise UsageError(f"argument {option}: {trace.path} has no step {step}: {there}")
    return trace[step]


def step_lines(trace: TraceReader, view: StepView) -> list[str]:
    """Everything that is recorded of a step."""
    lines = [f"{trace.path}: step {view.step}", f"  loss {exact(view.loss)}"]
    for what, figures in (("metric", view.metrics()), ("validation", view.validation())):
        lines += [f"  {what} {name} {value!r} ({value.hex()})" for name, value in figures.items()]
    lines += [f"  {name} {value!r} ({value.hex()})" for name, value in view.hyper.items()]
    lines += [f"  correction {value!r} ({value.hex()})" for value in view.corrections]
    if view.clip is not None:
        lines.append(f"  clipped at {view.clip[0]!r}, scale {view.clip[1]!r}")
    added = ", added in a tree" if view.order == "tree" else ""
    lines += [f"  micro-batches {view.micro_batches}{added}", f"  batch {view.input_digest.hex()}"]
    for name, digest in view.grad_digests.items():
        ends = _range(view, name)
        lines.append(f"  gradient {name}: {digest.hex()}" + (f" ({ends[0]} to {ends[1]})" if ends else ""))
    lines += [f"  state {name}: {digest.hex()}" for name, digest in view.state_digests.items()]
    lines += [f"  op {line}" for line in _op_lines(view)]
    lines += [f"  call #{i} {call.name}({call.options}), {call.where}" for i, call in enumerate(view.calls())]
    lines.append(f"  state root {view.root.hex() if view.root else 'not recorded at this step'}")
    lines.append(f"  link {view.link.hex()}")
    return lines


def step_dict(view: StepView) -> dict[str, Any]:
    """The same for programs."""
    return {
        "step": view.step,
        "loss": view.loss,
        "metrics": {},
        "validation": {},
        "hyper": view.hyper,
        "corrections": view.corrections,
        "clip": None if view.clip is None else {"threshold": view.clip[0], "scale": view.clip[1]},
        "micro_batches": view.micro_batches,
        "order": view.order,
        "batch": view.input_digest,
        "gradients": {
            name: {"digest": digest, "range": _range(view, name)} for name, digest in view.grad_digests.items()
        },
        "state": view.state_digests,
        "ops": _ops(view),
        "calls": view.calls(),
        "root": view.root,
        "link": view.link,
        **view.shown(),
    }


def _ops(view: StepView) -> list[dict[str, Any]] | None:
    """Everything the step computed; None where it is not recorded."""
    found = view.ops()
    if found is None:
        return None
    rows = zip(found.nodes, found.values, found.grads, strict=True)
    return [{**asdict(node), "value": value, "gradient": grad} for node, value, grad in rows]


def _op_lines(view: StepView) -> list[str]:
    found = view.ops()
    if found is None:
        return []
    lines: list[str] = []
    for i, (node, value, grad) in enumerate(zip(found.nodes, found.values, found.grads, strict=True)):
        named = f" '{node.name}'" if node.name else ""
        layer = f" in layer {node.scope}" if node.scope else ""
        arrived = "" if grad is None else f", gradient {grad.hex()}"
        lines.append(f"#{i} {node.op}{named} {node.dtype} {node.shape}{layer}: {value.hex()}{arrived}")
    return lines


def state_before(trace: TraceReader, step: int) -> dict[str, bytes]:
    """Tensor → digest before a step; empty where that state is not recorded."""
    if trace.has_keyframe(step):
        return trace.keyframe_digests(step)
    return trace[step - 1].state_digests if step else {}


def _range(view: StepView, name: str) -> tuple[Any, Any] | None:
    """Least and greatest element of a gradient; None where it is not recorded, or empty."""
    try:
        grad = view.grad(name)
    except NotRecordedError:
        return None
    return (grad.min(), grad.max()) if grad.size else None

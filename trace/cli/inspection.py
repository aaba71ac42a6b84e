"""What is to be said of a trace of version 2 and of its steps."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from ...base.runs.called_op import CalledOp
from ...base.runs.completed_step import TapeNode
from ...base.ulp import exact
from ..told import as_text
from ..v2.errors import NotRecordedError
from ..v2.read.op_digests import OpDigests
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from .answer import Fact, listed, untold
from .arguments import UsageError

_LAST = 8
"""Calls of ops that are shown of a step that has no end."""


def trace_facts(trace: TraceReader) -> list[Fact]:
    """Header, schema and events."""
    header, steps = trace.header, len(trace)
    mode = header.mode.name.lower()
    way = ", additive for what is computed on the way" if header.additive else ""
    recorded = (
        f"  record mode {mode}, digest {header.algorithm.name}{way}, state every {header.state_every} steps, numerics "
        f"{header.numerics}, seed {header.seed}"
    )
    parent = f"  {header.parent_steps} steps taken over from {header.parent_root.hex()}"
    return [
        Fact("path", trace.path, f"{trace.path}: version 2, {steps} steps, {'sealed' if trace.sealed else 'unsealed'}"),
        *untold(version=2, steps=steps, sealed=trace.sealed),
        Fact("mode", mode, recorded),
        *untold(digest=header.algorithm.name, additive=header.additive, state_every=header.state_every),
        *untold(numerics=header.numerics, seed=header.seed, created_at=header.created_at),
        Fact("parent_steps", header.parent_steps, parent if header.parent_steps else ""),
        Fact("parent_root", header.parent_root if header.parent_steps else None),
        Fact("keyframes", trace.keyframes, f"  {_keyframes(trace.keyframes, steps)}"),
        *_schema_facts(trace),
        *_told_facts(trace),
    ]


def _schema_facts(trace: TraceReader) -> Iterator[Fact]:
    groups, tensors = trace.schema.groups, trace.schema.tensors
    rules = [
        {"rule": g.rule, "hyperparameters": g.hyperparameters, "tensors": [tensors[i].name for i in g.tensors]}
        for g in groups
    ]
    yield Fact("rules", rules, listed(f"rule {g.rule} ({', '.join(g.hyperparameters)})" for g in groups))
    named = [{"name": t.name, "role": t.role.name.lower(), "dtype": t.dtype, "shape": t.shape} for t in tensors]
    rows = (f"{t['role']:<6} {t['dtype']:<4} {t['shape']!s:<16} {t['name']}" for t in named)
    yield Fact("tensors", named, listed(rows))


def _told_facts(trace: TraceReader) -> Iterator[Fact]:
    events = [{"steps": steps, "kind": event.kind, "text": event.text} for steps, event in trace.events()]
    yield Fact("events", events, listed(f"after {e['steps']} steps, {e['kind']}: {e['text']}" for e in events))
    noted = [{"steps": steps, **asdict(noted)} for steps, noted in trace.noted()]
    told = ((n["steps"], name, n[name]) for n in noted for name in ("notes", "host", "time"))
    yield Fact("noted", noted, listed(f"after {steps} steps, {name}: {as_text(value)}" for steps, name, value in told))
    yield _unfinished(trace)


def _unfinished(trace: TraceReader) -> Fact:
    """The calls of ops of a step at which a run has ended, where they are recorded; the last ones for people."""
    calls = () if trace.sealed else trace.calls(len(trace))
    last = [f"    {'at work: ' if call.raised else ''}{call.name}, {call.where}" for call in calls[-_LAST:]]
    head = f"  step {len(trace)} has no end; the last of its {len(calls)} calls of ops:"
    return Fact("unfinished_calls", calls, "\n".join([head, *last]) if calls else "")


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


def step_facts(trace: TraceReader, view: StepView) -> list[Fact]:
    """Everything that is recorded of a step."""
    clip = None if view.clip is None else {"threshold": view.clip[0], "scale": view.clip[1]}
    clipped = "" if view.clip is None else f"  clipped at {view.clip[0]!r}, scale {view.clip[1]!r}"
    added = ", added in a tree" if view.order == "tree" else ""
    grads: dict[str, dict[str, Any]] = {
        n: {"digest": d, "range": _range(view, n)} for n, d in view.grad_digests.items()
    }
    states = (f"state {name}: {digest.hex()}" for name, digest in view.state_digests.items())
    return [
        Fact("step", view.step, f"{trace.path}: step {view.step}"),
        Fact("loss", view.loss, f"  loss {exact(view.loss)}"),
        *_shown(view),
        Fact("hyper", view.hyper, _figures("", view.hyper)),
        Fact("corrections", view.corrections, listed(f"correction {c!r} ({c.hex()})" for c in view.corrections)),
        Fact("clip", clip, clipped),
        Fact("micro_batches", view.micro_batches, f"  micro-batches {view.micro_batches}{added}"),
        Fact("order", view.order),
        Fact("batch", view.input_digest, f"  batch {view.input_digest.hex()}"),
        Fact("gradients", grads, listed(_gradient(name, **grad) for name, grad in grads.items())),
        Fact("state", view.state_digests, listed(states)),
        _ops(view.ops()),
        _calls(view.calls()),
        Fact("root", view.root, f"  state root {view.root.hex() if view.root else 'not recorded at this step'}"),
        Fact("link", view.link, f"  link {view.link.hex()}"),
    ]


def _calls(calls: Sequence[CalledOp]) -> Fact:
    """The calls of ops of a step of another framework."""
    return Fact("calls", calls, listed(f"call #{i} {c.name}({c.options}), {c.where}" for i, c in enumerate(calls)))


_FIGURES = {"metrics": "metric ", "validation": "validation "}
"""What is shown of a step that its STEP does not hold, and what people read before each number."""


def _shown(view: StepView) -> Iterator[Fact]:
    shown: dict[str, Any] = {**{name: {} for name in _FIGURES}, **view.shown()}
    for name, value in shown.items():
        yield Fact(name, value, _figures(_FIGURES[name], value) if name in _FIGURES else "")


def _figures(what: str, figures: Mapping[str, float]) -> str:
    return listed(f"{what}{name} {value!r} ({value.hex()})" for name, value in figures.items())


def _gradient(name: str, digest: bytes, range: tuple[Any, Any] | None) -> str:
    return f"gradient {name}: {digest.hex()}" + (f" ({range[0]} to {range[1]})" if range else "")


def _ops(found: OpDigests | None) -> Fact:
    """Everything the step computed; None where it is not recorded."""
    if found is None:
        return Fact("ops", None)
    rows = list(zip(found.nodes, found.values, found.grads, strict=True))
    ops = [{**asdict(node), "value": value, "gradient": grad} for node, value, grad in rows]
    return Fact("ops", ops, listed(_op(i, *row) for i, row in enumerate(rows)))


def _op(number: int, node: TapeNode, value: bytes, grad: bytes | None) -> str:
    named = f" '{node.name}'" if node.name else ""
    layer = f" in layer {node.scope}" if node.scope else ""
    arrived = "" if grad is None else f", gradient {grad.hex()}"
    return f"op #{number} {node.op}{named} {node.dtype} {node.shape}{layer}: {value.hex()}{arrived}"


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

"""The first divergent step of two traces, and what differs in it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import cast

from ..errors import NotRecordedError
from ..format.constants import RecordMode
from ..read.reader import StepView, Trace, What
from ..verdict import Verdict
from .difference import first_difference


@dataclass(slots=True)
class Comparison:
    """What a comparison found: `step` is the first divergent one (None: none, or before step 0)."""

    verdict: Verdict
    step: int | None = None
    lines: list[str] = field(default_factory=list[str])


def compare_traces(a: Trace, b: Trace, ulp_tol: int = 0) -> Comparison:
    """Compare two open traces step by step; values may differ by `ulp_tol` where both record them.

    At tolerance 0 two traces of equal schema, digest and `state_every` are bisected along their state chains:
    O(log N) reads, which trust the stored links; `validate` is what proves them.

    Raises:
        ValueError: the digests are of different kinds, or a tolerance is asked of a trace of mode `digest`.
        InvalidTraceError: a frame that was read is damaged.
    """
    if a.header.algorithm != b.header.algorithm:
        raise ValueError("compare: expected two traces with the same digest, got XXH3-128 and SHA-256")
    if ulp_tol and RecordMode.DIGEST in (a.header.mode, b.header.mode):
        raise ValueError("compare: ulp_tol: digests have no tolerance; compare traces of record='grads', or use 0")
    if a.schema != b.schema:
        return Comparison(Verdict.DIVERGED, lines=["the schemas differ", *_schema_lines(a, b)])
    initial = _initial_lines(a, b)
    if initial:
        return Comparison(Verdict.DIVERGED, lines=["before step 0:", *initial, *_environment_lines(a, b)])
    step = _first_divergent(a, b, ulp_tol)
    if step is not None:
        lines = list(_step_lines(a, b, step, ulp_tol)) or ["the links differ but not what they link: run validate"]
        return Comparison(Verdict.DIVERGED, step, [f"step {step}:", *lines, *_environment_lines(a, b)])
    if len(a) != len(b):
        text = f"equal for {min(len(a), len(b))} steps; then one trace ends ({len(a)} and {len(b)} steps)"
        return Comparison(Verdict.DIVERGED, min(len(a), len(b)), [text])
    return Comparison(Verdict.OK, lines=[f"equal: {len(a)} steps"])


def _first_divergent(a: Trace, b: Trace, ulp_tol: int) -> int | None:
    common = min(len(a), len(b))
    if ulp_tol or a.header.state_every != b.header.state_every:
        return next((k for k in range(common) if any(_step_lines(a, b, k, ulp_tol))), None)
    return _bisect(common, lambda k: a[k].link != b[k].link)


def _bisect(common: int, differs: Callable[[int], bool]) -> int | None:
    """The first k below `common` for which `differs`, which stays true once it is."""
    if not common or not differs(common - 1):
        return None
    low, high = 0, common - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if differs(middle) else (middle + 1, high)
    return low


def _initial_lines(a: Trace, b: Trace) -> list[str]:
    left, right = a.keyframe_digests(0), b.keyframe_digests(0)
    for name in left:
        if left[name] != right[name]:
            return [f"  initial '{name}': {first_difference(a.keyframe(0)[name], b.keyframe(0)[name])}"]
    return []


def _step_lines(a: Trace, b: Trace, step: int, ulp_tol: int) -> Iterator[str]:
    x, y = a[step], b[step]
    if x.input_digest != y.input_digest:
        yield "  data: the batches differ"
    loss = first_difference(x.record.loss, y.record.loss, ulp_tol) if _like(x, y) else "their dtypes differ"
    if loss is not None:
        yield f"  loss: {loss}"
    for what in ("hyper", "corrections", "clip", "micro_batches"):
        if getattr(x, what) != getattr(y, what):
            yield f"  {what}: {getattr(x, what)} and {getattr(y, what)}"
    yield from _tensor_lines(a, b, step, "grad", x.grad_digests, y.grad_digests, ulp_tol)
    if x.root is not None and y.root is not None and not ulp_tol:
        yield from _tensor_lines(a, b, step, "after", x.state_digests, y.state_digests, ulp_tol)


def _like(x: StepView, y: StepView) -> bool:
    return x.record.loss.dtype == y.record.loss.dtype


def _tensor_lines(
    a: Trace, b: Trace, step: int, what: What, x: dict[str, bytes], y: dict[str, bytes], ulp_tol: int
) -> Iterator[str]:
    title = {"grad": "gradient of", "after": "state", "before": "state"}[what]
    for name in sorted(x.keys() ^ y.keys()):
        yield f"  {title} '{name}': recorded in one trace only"
    for name in x:
        if name in y and x[name] != y[name]:
            text = _values(a, b, step, what, name, ulp_tol)
            if text is not None:
                yield f"  {title} '{name}': {text}"


def _values(a: Trace, b: Trace, step: int, what: What, name: str, ulp_tol: int) -> str | None:
    try:
        difference = first_difference(
            a.tensor(name, step=step, what=what), b.tensor(name, step=step, what=what), ulp_tol
        )
    except NotRecordedError:
        return "the digests differ; element and values: not recorded"
    return None if difference is None else str(difference)


def _schema_lines(a: Trace, b: Trace) -> list[str]:
    left, right = ({t.name: t for t in trace.schema.tensors} for trace in (a, b))
    lines = [f"  '{name}' is in one trace only" for name in sorted(left.keys() ^ right.keys())]
    lines += [f"  {left[n]} and {right[n]}" for n in left if n in right and left[n] != right[n]]
    return lines or ["  " + " and ".join(str([g.rule for g in trace.schema.groups]) for trace in (a, b))]


def _environment_lines(a: Trace, b: Trace) -> list[str]:
    """How the two environments differ, which is informative only."""
    left, right = _environment(a), _environment(b)
    names = sorted(left.keys() | right.keys())
    return [f"  environment: {n} is {left.get(n)} and {right.get(n)}" for n in names if left.get(n) != right.get(n)]


def _environment(trace: Trace) -> dict[str, object]:
    text = next((event.text for _, event in trace.events() if event.kind == "environment"), "{}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {"environment": text}
    return cast(dict[str, object], value) if isinstance(value, dict) else {"environment": text}

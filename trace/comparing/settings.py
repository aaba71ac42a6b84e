"""What two runs were told and where they ran: the keys in which they differ."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from ...base.runs.completed_step import LOSS_SCALE
from ..v2.format.constants import FOREIGN_NUMERICS, FRAMEWORK_EVENT
from ..v2.format.schema import CLIPPING
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView

Differing: TypeAlias = dict[str, tuple[Any, Any]]
"""Key → what it is in `a` and in `b`; None where there is no such key. Keys in which both agree are absent."""

SOURCES = "sources"
"""The key of an environment that holds the digest of dgrr's own source files."""


def differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> Differing:
    """The keys in which two mappings differ, in their order.

    >>> differing({"lr": 0.001, "beta1": 0.9}, {"lr": 0.0011, "beta1": 0.9})
    {'lr': (0.001, 0.0011)}
    """
    return {key: (a.get(key), b.get(key)) for key in {**a, **b} if not _equal(a.get(key), b.get(key))}


def _equal(x: Any, y: Any) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        return x.hex() == y.hex()  # -0.0 is another number than 0.0, and every NaN the same
    return bool(x == y)


def header_of(trace: TraceReader) -> dict[str, Any]:
    """What the header says of the run, and its length."""
    header = trace.header
    return {
        "steps": len(trace),
        "seed": header.seed,
        "numerics": header.numerics,
        "record": header.mode.name.lower(),
        "digest": header.algorithm.name.replace("_", "-"),
        "additive digests": header.additive,
        "state_every": header.state_every,
        "data set": header.dataset.hex() if any(header.dataset) else None,
    }


def rule_of(trace: TraceReader, *, told: bool) -> dict[str, Any]:
    """The rules of the run, and what its first step was `told`."""
    rules = ", ".join(group.rule for group in trace.schema.groups if group != CLIPPING)
    return {"rule": rules, **(step_of(trace, trace[0]) if told else {})}


def step_of(trace: TraceReader, view: StepView) -> dict[str, Any]:
    """What a step was told: hyperparameters, the bound of the joint norm, how many micro-batches, added how."""
    threshold = None if view.clip is None else view.clip[0]
    together = {"micro_batches": view.micro_batches, "order": view.order}
    foreign = trace.header.numerics == FOREIGN_NUMERICS  # in whose steps alone it may stand, among metrics
    scale = {LOSS_SCALE: view.metrics().get(LOSS_SCALE)} if foreign else {}
    return {**_hyperparameters(trace, view), "clip_norm": threshold, **together, **scale}


def _hyperparameters(trace: TraceReader, view: StepView) -> dict[str, float]:
    """By name; of a name that several groups have, with the number of the group."""
    names = [(name, i) for i, group in enumerate(trace.schema.groups) for name in group.hyperparameters]
    shared = {name for name, count in Counter(name for name, _ in names).items() if count > 1}
    keys = [f"{name} of group {i}" if name in shared else name for name, i in names]
    return dict(zip(keys, view.record.hyper, strict=True))


def environment_of(trace: TraceReader) -> dict[str, Any]:
    """The environment that the trace was begun in, with that of another framework; empty if none is recorded."""
    found = _event(trace, "environment") if any(trace.header.environment) else {}
    if trace.header.numerics != FOREIGN_NUMERICS:  # nor look for what is not there in the whole file
        return found
    told = _event(trace, FRAMEWORK_EVENT)
    name, settings = str(told.get("name")), told.get("settings")
    more = cast(dict[str, Any], settings) if isinstance(settings, dict) else {}
    return {**found, name: told.get("version"), **{f"{name} {key}": value for key, value in more.items()}}


def framework_of(trace: TraceReader) -> str:
    """The name of the framework that computed a run; empty of a run of this library."""
    return str(_event(trace, FRAMEWORK_EVENT).get("name", "")) if trace.header.numerics == FOREIGN_NUMERICS else ""


def _event(trace: TraceReader, kind: str) -> dict[str, Any]:
    """The object that the first EVENT of a kind holds; its text by the kind, if it is none."""
    text = next((event.text for _, event in trace.events() if event.kind == kind), "{}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {kind: text}
    return cast(dict[str, Any], value) if isinstance(value, dict) else {kind: text}


def table(title: str, rows: Differing, room: int) -> list[str]:
    """Differing keys for a screen, `key: a -> b`, in so many lines, or in three if these are fewer."""
    lines = [f"  {key}: {shown(a)} -> {shown(b)}" for key, (a, b) in rows.items()]
    if len(lines) + 1 > max(room, 3):
        told = max(room - 2, 1)
        lines = [*lines[:told], f"  {len(lines) - told} more keys differ"]
    return [f"{title}:", *lines] if lines else []


def shown(value: Any) -> str:
    """A value for a screen, in short.

    >>> shown(None), shown(0.5)
    ('none', '0.5')
    """
    if value is None:
        return "none"
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

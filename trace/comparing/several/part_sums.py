"""Runs whose processes have other parts of their tensors: the additive digests of the parts, added up."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ...v2.format.additive import added
from ...v2.format.constants import SUMS_EVENT
from ...v2.read.reader import TraceReader, open_reader
from ...v2.verdict import Verdict
from ..result import Cause, Comparison

Name: TypeAlias = tuple[str, str]
"""The kind of a tensor, and its own name."""

Whole: TypeAlias = tuple[str, str, bytes]
"""Dtype, shape and additive digest of a tensor."""


class _Kind(NamedTuple):
    """What an EVENT tells of under one key: what one of them is called, and why two of it differ."""

    said: str
    cause: Cause


_KINDS = {
    "grads": _Kind("gradient", Cause.GRADIENT),
    "state": _Kind("optimizer buffer", Cause.UPDATE),
    "sums": _Kind("param", Cause.UPDATE),
}
"""In the order in which a step makes them. Older files tell of params alone."""


class _Run:
    """The tensors of a run after each step of which all of its processes tell."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.after, self.steps, self.ranks = dict[int, dict[Name, Whole]](), 0, len(paths)
        with ExitStack() as stack:
            traces = [stack.enter_context(open_reader(path, mode="tolerate_tail")) for path in paths]
            self.steps = min(map(len, traces))
            told = defaultdict[int, list[Any]](list)
            for trace in traces:
                _read(trace, self.steps, told)
        for step, said in told.items():
            if {each["rank"] for each in said} == {*range(len(paths))} == {*range(said[0]["ranks"])}:
                self.after[step] = _wholes(said)


def _read(trace: TraceReader, steps: int, told: dict[int, list[Any]]) -> None:
    for step, event in trace.events(steps):
        if event.kind == SUMS_EVENT:
            told[step].append(json.loads(event.text))


def _wholes(said: Sequence[Any]) -> dict[Name, Whole]:
    parts = defaultdict[tuple[Name, str, str], list[bytes]](list)
    for kind in _KINDS:
        for each in said:
            for name, (dtype, shape, digest) in each.get(kind, {}).items():
                parts[(kind, name), dtype, str(shape)].append(bytes.fromhex(digest))
    return {name: (dtype, shape, added(digests)) for (name, dtype, shape), digests in parts.items()}


def compare_parts(a: Path, b: Path, names: Sequence[Sequence[str]], *, bitwise: bool) -> Comparison | None:
    """Hold the whole tensors of two runs against each other, step by step; None where they do not tell of any.

    A tolerance cannot judge digests that differ: then nothing is proven.
    Raises TraceFileError where a file cannot be read.
    """
    with suppress(ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        one, other = (_Run([folder / name for name in of]) for folder, of in zip((a, b), names, strict=True))
        steps = sorted(one.after.keys() & other.after.keys())
        if any(one.after[step].keys() & other.after[step].keys() for step in steps):
            return Comparison(str(a), str(b), *_answer(one, other, steps, bitwise=bitwise))
    return None


def _answer(
    one: _Run, other: _Run, steps: Sequence[int], *, bitwise: bool
) -> tuple[Verdict, str, Cause | None, int | None]:
    parts = f"in the parts of {one.ranks} and of {other.ranks} processes, added up"
    for step in steps:
        before, after = one.after[step], other.after[step]
        unequal = [name for name in before if name in after and before[name] != after[name]]
        if unequal:
            kind = unequal[0][0]
            told = f"{parts}: step {step}: {_differing(kind, [name for of, name in unequal if of == kind])}"
            if bitwise:
                return Verdict.DIVERGED, told, _KINDS[kind].cause, step
            return Verdict.UNPROVEN, f"{told}; digests have no tolerance: compare bitwise, or equal parts", None, step
    if one.steps != other.steps:
        told = f"{parts}: equal to the bit, but for {one.steps} and {other.steps} steps"
        return Verdict.DIVERGED, told, Cause.LENGTH, min(one.steps, other.steps)
    last = _names(one.after[steps[-1]]), _names(other.after[steps[-1]])
    told = f"{parts}: {_compared(*last)} equal to the bit after {len(steps)} of {one.steps} steps"
    return Verdict.OK, f"{told}; not compared: {_not_compared(*last)}", None, None


def _differing(kind: str, names: Sequence[str]) -> str:
    said = _KINDS[kind].said
    return f"{said} {names[0]!r} differs" if len(names) == 1 else f"{len(names)} {said}s differ: {names}"


def _names(found: Iterable[Name]) -> dict[str, set[str]]:
    """The names of each kind."""
    names = {kind: set[str]() for kind in _KINDS}
    for kind, name in found:
        names[kind].add(name)
    return names


def _compared(one: Mapping[str, set[str]], other: Mapping[str, set[str]]) -> str:
    common = {kind: len(one[kind] & other[kind]) for kind in reversed(_KINDS)}
    return ", ".join(f"{count} {_KINDS[kind].said}s" for kind, count in common.items() if count)


def _not_compared(one: Mapping[str, set[str]], other: Mapping[str, set[str]]) -> str:
    """What no run tells of, and what one alone does."""
    said = ["losses"]
    for kind in reversed(_KINDS):
        alone = sorted(one[kind] ^ other[kind]) if one[kind] & other[kind] else []
        if alone:
            said.append(f"{_KINDS[kind].said}s of which one run alone tells: {alone}")
        elif not one[kind] & other[kind]:
            said.append(f"{_KINDS[kind].said}s")
    return ", ".join(said)

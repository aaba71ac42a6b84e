"""Runs whose processes have other parts of the params: the additive digests of the parts, added up."""

import json
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeAlias

from ...v2.format.additive import added
from ...v2.format.constants import SUMS_EVENT
from ...v2.read.reader import TraceReader, open_reader
from ...v2.verdict import Verdict
from ..result import Cause, Comparison

Whole: TypeAlias = tuple[str, str, bytes]
"""Dtype, shape and additive digest of a tensor."""


class _Run:
    """The params of a run after each step of which all of its processes tell."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.after, self.steps, self.ranks = dict[int, dict[str, Whole]](), 0, len(paths)
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


def _wholes(said: Sequence[Any]) -> dict[str, Whole]:
    parts = defaultdict[tuple[str, str, str], list[bytes]](list)
    for each in said:
        for name, (dtype, shape, digest) in each["sums"].items():
            parts[name, dtype, str(shape)].append(bytes.fromhex(digest))
    return {name: (dtype, shape, added(digests)) for (name, dtype, shape), digests in parts.items()}


def compare_parts(a: Path, b: Path, names: Sequence[Sequence[str]], *, bitwise: bool) -> Comparison | None:
    """Hold the whole params of two runs against each other, step by step; None where they do not tell of any.

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
            said = f"{unequal[0]!r} differs" if len(unequal) == 1 else f"{len(unequal)} params differ: {unequal}"
            told = f"{parts}: after step {step}, {said}"
            if bitwise:
                return Verdict.DIVERGED, told, Cause.UPDATE, step
            return Verdict.UNPROVEN, f"{told}; digests have no tolerance: compare bitwise, or equal parts", None, step
    if one.steps != other.steps:
        told = f"{parts}: equal to the bit, but for {one.steps} and {other.steps} steps"
        return Verdict.DIVERGED, told, Cause.LENGTH, min(one.steps, other.steps)
    names = one.after[steps[-1]].keys(), other.after[steps[-1]].keys()
    told = f"{parts}: {len(names[0] & names[1])} params equal to the bit after {len(steps)} of {one.steps} steps"
    told += "; losses, gradients and what the optimizer keeps were not compared"
    if names[0] != names[1]:
        told += f", nor params of which one run does not tell: {sorted(names[0] ^ names[1])}"
    return Verdict.OK, told, None, None

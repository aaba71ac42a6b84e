"""Tensors of which several processes have the same part: after each step they must be equal."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeAlias

from ...file_version import TraceFileError
from ...v2.format.constants import SHARDS_EVENT
from ...v2.read.reader import TraceReader, open_reader

Part: TypeAlias = tuple[str, str]
"""A tensor, and which part of it: its whole shape, the mesh, and the place on those axes that it is sharded over."""


def first_unequal(paths: Sequence[Path]) -> tuple[int, str] | None:
    """The first step after which a tensor, or what the optimizer keeps of it, differs between two that have the same.

    Raises TraceFileError where a file cannot be read.
    """
    with ExitStack() as stack:
        traces = [stack.enter_context(open_reader(path, mode="tolerate_tail")) for path in paths]
        alike = defaultdict[Part, list[int]](list)
        for rank, trace in enumerate(traces):
            for part in parts_of(trace):
                alike[part].append(rank)
        is_shared = any(len(ranks) > 1 for ranks in alike.values())
        for step in range(min(map(len, traces))) if is_shared else ():
            found = _unequal_after(traces, step, alike)
            if found is not None:
                name, one, other = found
                ranks = f"ranks {paths[one].stem} and {paths[other].stem}"
                return step, f"after step {step}, {name!r} differs between {ranks}, which hold replicas of it"
    return None


def same_parts(pairs: Iterable[tuple[Path, Path]]) -> bool:
    """Whether the two files of each pair have the same parts of the same tensors, or cannot be read."""
    with suppress(TraceFileError), ExitStack() as stack:
        for pair in pairs:
            one, other = (parts_of(stack.enter_context(open_reader(path, mode="tolerate_tail"))) for path in pair)
            if one != other:
                return False
    return True


def _unequal_after(
    traces: Sequence[TraceReader], step: int, alike: dict[Part, list[int]]
) -> tuple[str, int, int] | None:
    """A tensor and two ranks. What the optimizer keeps lies as its param does, where nothing else is said of it."""
    digests, told = [trace[step].state_digests for trace in traces], {param for param, _ in alike}
    for (param, _), (first, *others) in alike.items():
        for name in digests[first]:
            if param == (name if name in told else name.partition("/")[2] or name):
                for other in others:
                    if digests[other].get(name) != digests[first][name]:
                        return name, first, other
    return None


def parts_of(trace: TraceReader) -> list[Part]:
    """What a process has of each tensor, as its EVENTs say; of what only it knows nothing is said."""
    found: list[Part] = []
    for _, event in trace.events():
        if event.kind == SHARDS_EVENT:
            with suppress(ValueError, TypeError, KeyError, IndexError, RecursionError):
                said = json.loads(event.text)
                found += [(name, _part(laid, said["meshes"])) for name, laid in said["tensors"].items()]
    return found


def _part(laid: Any, meshes: Any) -> str:
    shape, placements, number = laid
    mesh = meshes[number]
    place = [at for at, placement in zip(mesh["at"], placements, strict=True) if not placement.startswith("R")]
    return json.dumps([shape, mesh["shape"], mesh["names"], placements, place])

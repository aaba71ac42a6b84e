"""How the runs of a page differ from the first of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.arrays import Array
from ..comparing.compare import compare
from ..comparing.result import Comparison
from ..v2.read.reader import TraceReader
from .packing import Pack
from .run import PageRun

SAME, OTHER, UNKNOWN = 0, 1, 2


def compared(traces: Sequence[TraceReader]) -> list[Comparison]:
    """Each trace but the first, held to the bit against the first."""
    return [compare(traces[0], other) for other in traces[1:]]


def steps_of(comparisons: Sequence[Comparison]) -> list[int]:
    """The steps at which runs part, and those before and behind."""
    return [found.step + k for found in comparisons if found.step is not None for k in (-1, 0, 1)]


def packed(first: PageRun, other: PageRun, found: Comparison, pack: Pack) -> dict[str, Any]:
    """A comparison as the page has it; `gradients` by column and param of the other run: 0 same, 1 other, 2 unknown."""
    marks = gradients(first, other)
    return {**found.to_dict(), "text": str(found), "gradients": None if marks is None else pack.add(marks)}


def gradients(first: PageRun, other: PageRun) -> Array | None:
    """Steps × params of the other run: 0 same, 1 other, 2 unknown; None where digests are of two kinds."""
    if first.trace.header.algorithm is not other.trace.header.algorithm:
        return None
    marks = np.full(other.tensors.digests.shape, UNKNOWN, np.uint8)
    rows = {step: i for i, step in enumerate(first.tensors.columns)}
    params = {name: i for i, name in enumerate(first.tensors.params)}
    shared = [(i, rows[step]) for i, step in enumerate(other.tensors.columns) if step in rows]
    for j, name in enumerate(other.tensors.params):
        if name in params and shared:
            mine, theirs = (np.array(places) for places in zip(*shared, strict=True))
            equal = other.tensors.digests[mine, j] == first.tensors.digests[theirs, params[name]]
            marks[mine, j] = np.where(equal, SAME, OTHER)
    return marks

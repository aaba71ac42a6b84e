"""The graph of a step: its nodes, with the sizes of their values and gradients where these were computed again."""

from collections.abc import Sequence
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from ...base.arrays import Array
from ...base.runs.completed_step import StepTape, TapeNode
from ..v2.errors import InvalidTraceError
from ..v2.read.reader import TraceReader
from .figures import norm

MOST_NODES = 20_000
"""Of a step; a page shows no graph of more."""

_SEARCHED = 64
"""Steps in which recorded ops are looked for, from the first on."""


def recorded_graph(trace: TraceReader, steps: int) -> dict[str, Any] | None:
    """The graph of the first step whose ops are recorded; None where there is none among the first of so many steps."""
    with suppress(InvalidTraceError):  # which the proofs tell
        for step in range(min(steps, _SEARCHED)):
            found = trace.ops(step)
            if found is not None:
                return graph_of(step, found.nodes)
    return None


def rebuilt_graph(step: int, tape: StepTape) -> dict[str, Any] | None:
    """The graph of a step that was computed again."""
    return graph_of(step, tape.nodes, tape.values, tape.grads)


def graph_of(
    step: int,
    nodes: Sequence[TapeNode],
    values: Sequence[Array] | None = None,
    grads: Sequence[Array | None] | None = None,
) -> dict[str, Any] | None:
    """Nodes as the page has them: each once in every list."""
    if len(nodes) > MOST_NODES:
        return None
    return {
        "step": step,
        "rebuilt": values is not None,
        "op": [node.op for node in nodes],
        "dtype": [node.dtype for node in nodes],
        "shape": [list(node.shape) for node in nodes],
        "bytes": [prod(node.shape) * np.dtype(node.dtype).itemsize for node in nodes],
        "parents": [list(node.parents) for node in nodes],
        "attrs": [node.attrs for node in nodes],
        "name": [node.name for node in nodes],
        "scope": [node.scope for node in nodes],
        "place": [node.place for node in nodes],
        "value": None if values is None else [norm(value) for value in values],
        "gradient": None if grads is None else [None if grad is None else norm(grad) for grad in grads],
    }

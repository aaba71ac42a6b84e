"""Evaluating a recorded graph node by node on fresh arrays, by the ops' references or by their kernels."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .....tape.record.op import OPS
from .....tape.values.tensor import AnyTensor, Array
from ....ir.graph import IRGraph, IRNode

Apply = Callable[[IRNode, list[Array | None]], Array]
"""What computes the result of a node from the arrays of its inputs."""


def by_reference(node: IRNode, inputs: list[Array | None]) -> Array:
    """The op's own reference: slow, obvious, and without any code in common with the kernels."""
    with np.errstate(all="ignore"):
        return np.asarray(OPS[node.op].reference(*inputs, **node.attrs))


def by_kernels(node: IRNode, inputs: list[Array | None]) -> Array:
    """The op as eager execution computes it."""
    return OPS[node.op].compute([None if x is None else AnyTensor(x) for x in inputs], node.attrs).array


def needed_nodes(graph: IRGraph, targets: Iterable[int]) -> list[IRNode]:
    """The nodes that some values come from, in order."""
    live, found = set(targets), list[IRNode]()
    for node in reversed(graph.nodes):
        if live.intersection(node.outputs):
            live.update(node.reads)
            found.append(node)
    return found[::-1]


def evaluate(nodes: Iterable[IRNode], declared: Mapping[int, Array], apply: Apply) -> dict[int, Array]:
    """The values that nodes of the tape's ops produce, and those declared, by id."""
    values: dict[int, Any] = dict(declared)
    for node in nodes:
        if node.op in OPS:
            values[node.outputs[0]] = apply(node, [None if id is None else values[id] for id in node.inputs])
    return values

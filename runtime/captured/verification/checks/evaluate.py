"""Evaluating a recorded graph node by node on fresh arrays, by references or by kernels."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .....base.arrays import Array
from .....tape.numerics.engine.launch import Words, run
from .....tape.record.lowering import ViewStep, order
from .....tape.record.op import OPS
from .....tape.values.spec import Spec
from .....tape.values.tensor import AnyTensor
from ....ir.bodies import ATTRIBUTES, bodies_of, inputs_of, places_of, step_outputs
from ....ir.graph import IRGraph, IRNode
from ....optim.state_ops import STATE_OPS

Apply = Callable[[IRNode, list[Array | None]], Array]
"""What computes the result of a node from the arrays of its inputs."""


def by_reference(node: IRNode, inputs: list[Array | None]) -> Array:
    """The op's own reference: slow, obvious, and without any code in common with the kernels."""
    with np.errstate(all="ignore"):
        return np.asarray(OPS[node.op].reference(*inputs, **node.attrs))


def by_kernels(node: IRNode, inputs: list[Array | None]) -> Array:
    """The op as eager execution computes it."""
    return OPS[node.op].compute([None if x is None else AnyTensor(x) for x in inputs], node.attrs).array


def by_references_of(nodes: Iterable[IRNode]) -> Apply:
    """By their references these nodes, by their kernels all others."""
    held = {node.id for node in nodes}
    return lambda node, inputs: (by_reference if node.id in held else by_kernels)(node, inputs)


def results_by_reference(node: IRNode, inputs: Sequence[Array | None]) -> Sequence[Array] | None:
    """All that a node makes, by the reference of its op or of its optimizer's primitive; None where there is none."""
    if node.op in OPS:
        return [by_reference(node, list(inputs))]
    if node.op in ATTRIBUTES:
        return of_bodies(node, inputs, by_reference)
    reference = STATE_OPS[node.op].reference
    if reference is None:
        return None
    with np.errstate(all="ignore"):
        return reference(*inputs, *node.attrs.get("attributes", ()))


def reference_work(graph: IRGraph, node: IRNode) -> int:
    """How long the reference of a node takes: elements that it reads and makes, and the work of its kernels."""
    touched = sum(graph.values[id].spec.size for id in (*node.reads, *node.outputs))
    if node.op in ATTRIBUTES:
        inside = sum(reference_work(body, each) for body in bodies_of(node) for each in body.nodes)
        return touched + len(places_of(node)) * inside
    if node.op not in OPS:
        return touched
    specs = [None if id is None else graph.values[id].spec for id in node.inputs]
    steps = [slot.step for slot in order(OPS[node.op].lowered(specs, node.attrs)[1])]
    return touched + sum(step.work for step in steps if step is not None and not isinstance(step, ViewStep))


def affordable(graph: IRGraph, nodes: Iterable[IRNode], most: int) -> list[IRNode]:
    """The nodes whose references together take no more than ``most``: the cheapest first, then in their own order."""
    work = {node.id: reference_work(graph, node) for node in nodes}
    total, taken = 0, set[int]()
    for id in sorted(work, key=lambda id: (work[id], id)):
        total += work[id]
        if total > most:
            break
        taken.add(id)
    return [node for node in graph.nodes if node.id in taken]


def needed_nodes(graph: IRGraph, targets: Iterable[int]) -> list[IRNode]:
    """The nodes that some values come from, in order."""
    live, found = set(targets), list[IRNode]()
    for node in reversed(graph.nodes):
        if live.intersection(node.outputs):
            live.update(node.reads)
            found.append(node)
    return found[::-1]


def evaluate(nodes: Iterable[IRNode], declared: Mapping[int, Array], apply: Apply) -> dict[int, Array]:
    """The values that nodes produce, and those declared, by id; the optimizer's primitives have only kernels."""
    values: dict[int, Any] = dict(declared)
    for node in nodes:
        inputs = [None if id is None else values[id] for id in node.inputs]
        if node.op in OPS:
            values[node.outputs[0]] = apply(node, inputs)
        elif node.op in ATTRIBUTES:
            values.update(zip(node.outputs, of_bodies(node, inputs, apply), strict=True))
        else:
            values.update(zip(node.outputs, _state_results(node, inputs), strict=True))
    return values


def of_bodies(node: IRNode, inputs: Sequence[Any], apply: Apply) -> list[Array]:
    """What a node with bodies makes, step by step; a node of a body is computed as ``apply`` computes the whole."""
    bodies = bodies_of(node)
    if node.op == "cond":
        bodies, inputs = bodies[0 if inputs[0] else 1 :], inputs[1:]
    body, outputs = bodies[0], step_outputs(node, bodies[0])
    kinds, ids = zip(*inputs_of(body), strict=True) if inputs else ((), ())
    state, found = [x for kind, x in zip(kinds, inputs, strict=True) if kind == "carry"], dict[str, dict[int, Any]]()

    def one(inner: IRNode, arrays: list[Array | None]) -> Array:
        return apply(replace(inner, id=node.id), arrays)

    for t in places_of(node):
        if node.op == "while_loop" and not state[0]:
            break
        rows = [x[t, ...] if kind == "xs" else x for kind, x in zip(kinds, inputs, strict=True)]
        values = evaluate(body.nodes, dict(zip(ids, [*state, *rows[len(state) :]], strict=True)), one)
        state = [values[outputs[f"carry {i}"]] for i in range(len(state))]
        for key, id in outputs.items():
            found.setdefault(key, {})[t] = values[id]
    made = {f"carry {i}": end for i, end in enumerate(state)}
    for key in found.keys() - made.keys():
        made[key] = np.stack([found[key][t] for t in sorted(found[key])]) if node.op == "scan" else found[key][0]
    return [made[key] for key in node.attrs["results"]]


def _state_results(node: IRNode, inputs: Sequence[Any]) -> list[Array]:
    """What a primitive of the optimizer makes of copies of what it overwrites, and besides."""
    record = STATE_OPS[node.op]
    if not node.outputs:
        return []
    made = [array.copy() for array in inputs[: record.in_place]]
    if record.fresh is not None:
        spec = record.fresh([Spec(array.shape, array.dtype) for array in inputs])
        made.append(np.zeros(spec.shape, spec.dtype))
    given = [np.ascontiguousarray(array) for array in inputs[record.in_place :]]
    size = () if record.sized is None else (inputs[record.sized].size,)
    if record.gathers:
        given, size = [np.concatenate(given[:-1]), given[-1]], (len(given) - 1,)
    words = Words(*size, *node.attrs.get("attributes", ()))
    run(record.kernel.address(inputs[record.element].dtype), words, (*made, *given), 1)
    return made

"""All that a step computes against references, node by node, to the bit: values, gradients, state, parameters.

Each node is held by itself, on the inputs that kernels have made: what the next node rounds away is found too. The loss
of the plan is that of the nodes; other checks hold the rest of the plan to them.
"""

from collections.abc import Sequence

from ....ir.graph import IRNode
from ..bits import difference
from ..report import CheckError
from ..subject import Part, Subject
from .evaluate import affordable, by_kernels, evaluate, results_by_reference

SHOWN = 5
"""Nodes that are named of those that are not held."""


def check_references(subject: Subject) -> str:
    """Every node of the step computes what its reference does, and the plan has the loss of the nodes."""
    part = subject.parts[0]  # the gradients' plans have no other nodes
    values = evaluate(part.graph.nodes, subject.declared(part), by_kernels)
    making = [node for node in part.graph.nodes if node.outputs]
    unheld, held = list[IRNode](), affordable(part.graph, making, subject.reference_work)
    for node in held:
        expected = results_by_reference(node, [None if id is None else values[id] for id in node.inputs])
        if expected is None:
            unheld.append(node)
            continue
        for position, (id, array) in enumerate(zip(node.outputs, expected, strict=True)):
            wrong = difference(array, values[id])
            if wrong is not None:
                name = f"{part.node_name(node)}{_updated(part, node, position)}"
                raise CheckError(f"{name}: reference and kernel differ: {wrong}")
    subject.step.replay(1)
    loss = values[part.graph.outputs["loss"]]
    wrong = difference(loss, subject.step.loss)
    if wrong is not None:
        raise CheckError(f"the loss of the plan: {wrong}; each node by itself computes what its reference does")
    taken = {node.id for node in held}
    costly = [node for node in making if node.id not in taken]
    left_out = _named(part, unheld, "a kernel of yours") + _named(part, costly, "see verify(reference_work=…)")
    return f"{len(held) - len(unheld)} of {len(making)} nodes, loss {loss[()]}{left_out}"


def _updated(part: Part, node: IRNode, position: int) -> str:
    """Which parameter or state a result is put in the place of, in words."""
    id = node.outputs[position]
    name = next((part.graph.values[old].name for old, new in part.graph.updates.items() if new == id), "")
    return f": {name!r}" if name else ""


def _named(part: Part, nodes: Sequence[IRNode], why: str) -> str:
    if not nodes:
        return ""
    shown = [part.node_name(node) for node in nodes[:SHOWN]]
    more = [f"{len(nodes) - SHOWN} more"] if len(nodes) > SHOWN else []
    return f"; not held to the reference ({why}): {', '.join([*shown, *more])}"

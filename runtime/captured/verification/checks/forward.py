"""The loss of the plan against the references of the ops, to the bit."""

from ..bits import difference
from ..report import CheckError
from ..subject import Subject
from .evaluate import by_kernels, by_reference, evaluate, needed_nodes


def check_forward(subject: Subject) -> str:
    """The loss, computed by the ops' references from the recorded graph, is the plan's to the bit."""
    part = subject.parts[0]
    loss, declared = part.graph.outputs["loss"], subject.declared(part)
    nodes = needed_nodes(part.graph, [loss])
    expected = evaluate(nodes, declared, by_reference)
    subject.step.replay(1)
    wrong = difference(expected[loss], subject.step.loss)
    if wrong is None:
        return f"{len(nodes)} nodes, loss {expected[loss][()]}"
    fast = evaluate(nodes, declared, by_kernels)
    for node in nodes:
        differs = difference(expected[node.outputs[0]], fast[node.outputs[0]])
        if differs is not None:
            raise CheckError(f"{part.node_name(node)}: reference and kernel differ: {differs}")
    raise CheckError(f"the loss of the plan: {wrong}; each node by itself computes what its reference does")

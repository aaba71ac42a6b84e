"""Gradients inside of bodies: of every value, in every step."""

from collections.abc import Sequence
from typing import Any

from ..graph.backward import DenseGrads
from ..graph.node import Node
from ..values.tensor import AnyTensor
from ..var.var import AnyVar
from .body import Body


class StepNode(Node):
    """A node of a body as it was in one step. Of a call in the body it passes nothing on: that has steps of its own."""

    __slots__ = ("loop",)

    def pull(self, g: Any, inputs: Sequence[Any], output: Any, live: Any = None) -> list[tuple[int, Any]]:
        """As of all nodes."""
        return super().pull(g, inputs, output, live) if self.loop is None else []


def of_step(tape: Any, body: Body, known: dict[int, AnyVar], cotangents: Sequence[Any]) -> DenseGrads[AnyTensor]:
    """The gradients of a step whose values are ``known`` on a tape: of all but what all steps take from around."""
    nodes: list[Node] = []
    found: list[AnyTensor | None] = []
    for node in body.nodes[: body.size]:
        sources = tuple([None if x is None else nodes[x.id] for x in node.sources])
        was: Node = tape.node(known[node.id])
        head = (node.id, node.op, node.attrs, was.value, sources, was.requires_grad)
        row: list[Any] = [*head, node.name, node.scope, node.place]
        made = StepNode(*row)
        made.loop = was.loop if node.loop is not None else None
        nodes.append(made)
        found.append(None if node.id in body.closed else cotangents[was.id])
    return DenseGrads(nodes, found, body.tape.node)

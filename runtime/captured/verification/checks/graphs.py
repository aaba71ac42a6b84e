"""Checks of graphs: well formed after every pass, and every gradient linked to the values that it comes from."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from .....tape.record.derivative import Derivative
from .....tape.record.op import OPS
from .....tape.transforms.symbolic_tape import SymbolicTape
from .....tape.values.spec import Spec
from ....ir.bodies import ATTRIBUTES
from ....ir.errors import IRError
from ....ir.graph import IRGraph, IRNode, gradient_name
from ....ir.verify import verify
from ....lower.compile import GRAPH_PASSES
from ..report import CheckError
from ..subject import Subject


def check_graphs(subject: Subject) -> str:
    """Shapes, single producers, use after definition and roles, as recorded, after each pass, and as lowered."""
    nodes = 0
    for part in subject.parts:
        graph = part.graph
        _verify(graph, "as recorded")
        for name, graph_pass in GRAPH_PASSES.items():
            graph = graph_pass(graph)
            _verify(graph, f"after {name}")
        _verify(part.program.graph, "as lowered")
        nodes += len(part.graph.nodes)
    return f"{nodes} nodes in {len(subject.parts)} graphs, as recorded and after {len(GRAPH_PASSES)} passes"


def _verify(graph: IRGraph, when: str) -> None:
    try:
        verify(graph)
    except IRError as error:
        raise CheckError(f"{when}: {error}") from None


def check_links(subject: Subject) -> str:
    """Every gradient comes from the seed of the loss, and its backward nodes read each value that a VJP needs."""
    links = 0
    frozen = subject.step.groups.frozen
    trained = {name: id for name, id in subject.plans.recording.params.items() if name not in frozen}
    for part in subject.parts:
        links += check_graph_links(part.graph, trained)
    return f"{links} links of gradients to forward values"


def check_graph_links(graph: IRGraph, params: dict[str, int]) -> int:
    """The same for one graph; the number of links. Raises CheckError at the first that is missing."""
    backward = _Backward(graph)
    for name, param in params.items():
        if backward.edges(param) and gradient_name(param) not in graph.outputs:
            raise CheckError(f"{graph.name}: the loss depends on parameter {name!r} (%{param}), which has no gradient")
    return sum(backward.check(id) for id in graph.values if gradient_name(id) in graph.outputs)


@dataclass(frozen=True)
class _Edge:
    """An input of a node through which a cotangent flows back: the values that its VJP needs."""

    node: IRNode
    position: int
    needs: tuple[int, ...]


class _Backward:
    """What the backward part of a graph must be connected to, from its forward part and the ops' own VJPs."""

    def __init__(self, graph: IRGraph) -> None:
        self.graph, self.loss = graph, graph.outputs["loss"]
        self._producers = {id: node for node in graph.nodes for id in node.outputs}
        self.forward = self._sources(self.loss)
        self._edges: dict[int, list[_Edge]] = {}
        leading = {self.loss}  # values that a cotangent reaches: none behind an op without derivatives
        for node in reversed(graph.nodes):
            if (node.op in OPS or node.op in ATTRIBUTES) and not leading.isdisjoint(node.outputs):
                for edge in self._edges_of(node):
                    leading.add(_at(edge))
                    self._edges.setdefault(_at(edge), []).insert(0, edge)

    def _sources(self, id: int, known: Collection[int] = ()) -> set[int]:
        """The values that a value comes from, itself included; behind those that are known it does not look."""
        found, todo = set[int](), [id]
        while todo:
            at = todo.pop()
            if at not in found:
                found.add(at)
                todo += self._producers[at].reads if at in self._producers and at not in known else ()
        return found

    def edges(self, id: int) -> list[_Edge]:
        """All edges on the ways from a value to the loss."""
        found, seen, todo = list[_Edge](), set[int](), [id]
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                found += self._edges.get(at, [])
                todo += [out for edge in self._edges.get(at, []) for out in edge.node.outputs]
        return found

    def check(self, id: int) -> int:
        """The gradient of one value; the number of its links."""
        gradient, where = self.graph.outputs[gradient_name(id)], f"{self.graph.name}: the gradient of %{id}"
        edges, sources = self.edges(id), self._sources(gradient, known=self.forward)
        if not edges and id not in self.forward:
            raise CheckError(f"{where}: %{id} has no way to the loss")
        if not any(self._is_seed(source) for source in sources):
            raise CheckError(f"{where}: %{gradient} does not come from the loss: it is constant or disconnected")
        for edge in edges:
            for needed in edge.needs:
                if needed not in sources:
                    name = f"node {edge.node.id} ({edge.node.op})"
                    raise CheckError(f"{where}: %{gradient} is not linked to %{needed}, which the VJP of {name} needs")
        return sum(len(edge.needs) for edge in edges)

    def _is_seed(self, id: int) -> bool:
        """Whether a value is the cotangent of a loss: a constant 1 that is no part of the forward pass."""
        value = self.graph.values[id]
        return value.content == "1.0" and value.shape == () and id not in self.forward

    def _edges_of(self, node: IRNode) -> Iterator[_Edge]:
        specs = [None if id is None else self.graph.values[id].spec for id in node.inputs]
        if node.op in ATTRIBUTES:  # what the way back needs are values of its body
            yield from [_Edge(node, i, ()) for i, spec in enumerate(specs) if spec is not None and spec.floating]
            return
        for position, rule in enumerate(OPS[node.op].vjp):
            spec = specs[position]
            if isinstance(rule, Derivative) and spec is not None and spec.dtype.kind == "f":
                needed = _needed(node, rule, specs, self.graph.values[node.outputs[0]].spec)
                yield _Edge(node, position, needed)


def _at(edge: _Edge) -> int:
    id = edge.node.inputs[edge.position]
    assert id is not None, "an omitted input has no edge"
    return id


def _needed(node: IRNode, rule: Derivative, specs: list[Spec | None], out: Spec) -> tuple[int, ...]:
    """The inputs and outputs of a node from which the result of a VJP is computed: found by recording it alone."""
    tape = SymbolicTape()
    ids = [*node.inputs, node.outputs[0]]
    made: list[Any] = [
        None if spec is None else tape.symbol(spec, f"value {i}", requires_grad=spec.dtype.kind == "f")
        for i, spec in enumerate((*specs, out))
    ]
    cotangent = tape.symbol(out, "cotangent", requires_grad=True)
    result = rule(cotangent, made[:-1], made[-1], node.attrs)
    used, todo = set[int](), [result.id]
    while todo:
        at = tape.node(todo.pop())
        used.add(at.id)
        todo += at.parents if at.op is not None else ()
    return tuple([id for id, var in zip(ids, made, strict=True) if id is not None and var.id in used])

"""Passes over graphs: what no result needs is dropped, what is computed twice is computed once."""

from dataclasses import replace

from ..optim.state_ops import STATE_OPS
from .bodies import ATTRIBUTES, with_results
from .graph import IRGraph, IRNode, Role


def eliminate_dead_code(graph: IRGraph) -> IRGraph:
    """Without the nodes and constants that no output, no update and no check depends on."""
    live = {*graph.outputs.values(), *graph.updates.values()}
    kept: list[IRNode] = []
    for node in reversed(graph.nodes):
        if not node.outputs or not live.isdisjoint(node.outputs):
            needed = with_results(node, live) if node.op in ATTRIBUTES else node
            live.update(needed.reads, needed.outputs)
            kept.append(needed)
    values = {
        id: value for id, value in graph.values.items() if id in live or value.role not in (Role.CONST, Role.STATIC)
    }
    return replace(graph, values=values, nodes=tuple(reversed(kept)))


def eliminate_common_subexpressions(graph: IRGraph) -> IRGraph:
    """With one node for all that apply one op with equal attributes to the same values, and one of equal constants."""
    same: dict[int, int] = {}
    known: dict[object, tuple[int, ...]] = {}
    for value in graph.with_role(Role.CONST):
        content = (value.content, value.spec)
        _merge(same, (value.id,), known.setdefault(content, (value.id,)))
    nodes: list[IRNode] = []
    for node in graph.nodes:
        inputs = node.inputs
        if not same.keys().isdisjoint(inputs):
            inputs = tuple([None if i is None else same.get(i, i) for i in inputs])
            node = IRNode(node.id, node.op, inputs, node.outputs, node.attrs)
        key = (node.op, inputs, node.attrs_shown)
        if node.op in STATE_OPS or known.setdefault(key, node.outputs) is node.outputs:
            nodes.append(node)
        else:
            _merge(same, node.outputs, known[key])
    return replace(
        graph,
        values={id: value for id, value in graph.values.items() if id not in same},
        nodes=tuple(nodes),
        outputs={name: same.get(id, id) for name, id in graph.outputs.items()},
        updates={id: same.get(new, new) for id, new in graph.updates.items()},
    )


def _merge(same: dict[int, int], ids: tuple[int, ...], first: tuple[int, ...]) -> None:
    if ids != first:
        same.update(zip(ids, first, strict=True))


def add_early(graph: IRGraph) -> IRGraph:
    """With each addition directly behind what makes the last of its terms: sums are whole as early as can be."""
    made: dict[int, int] = {}
    behind: list[list[IRNode]] = [[] for _ in graph.nodes]
    for i, node in enumerate(graph.nodes):
        place = max((made[id] for id in node.reads if id in made), default=i) if node.op == "add" else i
        behind[place].append(node)
        made |= dict.fromkeys(node.outputs, place)
    return replace(graph, nodes=tuple([node for together in behind for node in together]))

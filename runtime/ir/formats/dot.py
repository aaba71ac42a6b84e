"""A graph in the DOT language: declared values as boxes, coloured by role, ops as ellipses."""

from collections.abc import Iterator

from ..values import GraphContent, IRNode, Role, Value
from .text import attributes

COLOURS = {
    Role.INPUT: "palegreen",
    Role.PARAM: "lightblue",
    Role.STATE: "khaki",
    Role.MODEL_STATE: "wheat",
    Role.CONST: "lightgrey",
    Role.STATIC: "white",
}


def draw(graph: GraphContent) -> str:
    """The drawing; an edge names its value where the op has several results, a dashed edge is an update."""
    return "\n".join([f"digraph {quoted(graph.name)} {{", *(f"  {line};" for line in _lines(graph)), "}"])


def _lines(graph: GraphContent) -> Iterator[str]:
    sources = {id: node for node in graph.nodes for id in node.outputs}
    yield "node [shape=ellipse]"
    for id, value in sorted(graph.values.items()):
        if id not in sources:
            yield _box(value)
    for node in graph.nodes:
        yield f"n{node.id} [label={quoted(f'#{node.id} {node.op}{attributes(node)}')}]"
        for id in node.reads:
            yield _edge(sources, id, f"n{node.id}")
    for i, (name, id) in enumerate(sorted(graph.outputs.items())):
        yield f"o{i} [label={quoted(name)}, shape=plaintext]"
        yield _edge(sources, id, f"o{i}")
    for id, target in sorted(graph.updates.items()):
        yield _edge(sources, target, f"v{id}", "style=dashed", "constraint=false")


def _box(value: Value) -> str:
    sizes = ", ".join(map(str, value.shape))
    label = "\n".join(filter(None, [f"%{value.id} {value.role}", value.name, f"{value.dtype}[{sizes}]", value.content]))
    return f'v{value.id} [label={quoted(label)}, shape=box, style=filled, fillcolor="{COLOURS[value.role]}"]'


def _edge(sources: dict[int, IRNode], id: int, target: str, *style: str) -> str:
    """From the op that produces a value, or from its box."""
    node = sources.get(id)
    labels = [f'label="%{id}"'] if node is not None and len(node.outputs) > 1 else []
    given = ", ".join([*labels, *style])
    source = f"v{id}" if node is None else f"n{node.id}"
    return f"{source} -> {target}" + (f" [{given}]" if given else "")


def quoted(text: str) -> str:
    """A DOT string that shows ``text``: backslashes and quotes escaped, lines centred."""
    return '"' + text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") + '"'

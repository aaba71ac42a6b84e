"""A graph as text: one line per declared value, node, output and update.

Every graph can be written, also one that is wrong. A value stands where it is produced, or else on a line of
its own; names and odd contents stand in JSON's quotes, attributes as Python shows them. An attribute that is a text of
several lines, as the body of a loop is, stands below its node.
"""

import json
import re
from collections.abc import Collection, Iterator

from ..values import GraphContent, IRNode, Role, Value

OMITTED = "-"
"""An input that is not given."""

PLAIN_CONTENT = re.compile(r"[\w.:+-]+", re.ASCII)
"""Contents that stand without quotes: numbers, digests."""


BELOW = "below"
"""What stands for an attribute whose text follows: a line with its name, and its lines, each behind so many blanks."""

HEAD, BLANKS = " " * 4, " " * 6


def write(graph: GraphContent) -> str:
    """The text of a graph."""
    return "\n".join([f"graph {quoted(graph.name)}", *(f"  {line}" for line in _lines(graph))])


def _lines(graph: GraphContent) -> Iterator[str]:
    shown = _produced(graph)
    for id, value in sorted(graph.values.items()):
        if id not in shown:
            yield _declaration(value)
    for node in graph.nodes:
        below = [name for name, value in node.attrs.items() if _is_block(value)]
        yield _node(node, [_output(id, shown) for id in node.outputs], below)
        for name in below:
            yield f"{HEAD[2:]}{name}:"
            yield from [BLANKS[2:] + line for line in node.attrs[name].split("\n")]
    for name, id in sorted(graph.outputs.items(), key=lambda output: (output[1], output[0])):
        yield f"output {quoted(name)} = %{id}"
    for id, target in sorted(graph.updates.items()):
        yield f"update %{id} <- %{target}"


def _produced(graph: GraphContent) -> dict[int, Value]:
    """The values that are described where a node first produces them, which takes them out as it shows them."""
    ids = {id for node in graph.nodes for id in node.outputs}
    values = graph.values.items()
    return {id: v for id, v in values if id in ids and v.role is Role.STATIC and not v.content}


def _declaration(value: Value) -> str:
    content = value.content if PLAIN_CONTENT.fullmatch(value.content) else quoted(value.content)
    return _described(value, f" {value.role}") + (f" = {content}" if value.content else "")


def _described(value: Value, role: str = "") -> str:
    """A value as a node or a declaration shows it."""
    sizes = ", ".join(map(str, value.shape))
    return f"%{value.id}: {value.dtype}[{sizes}]{role}" + (f" {quoted(value.name)}" if value.name else "")


def _output(id: int, shown: dict[int, Value]) -> str:
    value = shown.pop(id, None)
    return f"%{id}" if value is None else _described(value)


def _is_block(value: object) -> bool:
    """Whether an attribute is a text whose lines can be read back from below a node."""
    lines = value.split("\n") if isinstance(value, str) else []
    return len(lines) > 1 and all(line.strip() and line.isprintable() for line in lines)


def _node(node: IRNode, outputs: list[str], below: Collection[str]) -> str:
    results = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
    inputs = ", ".join(OMITTED if id is None else f"%{id}" for id in node.inputs)
    return f"#{node.id} {results} = {node.op}({inputs})" + attributes(node, below)


def attributes(node: IRNode, below: Collection[str] = ()) -> str:
    """`` {axis=0, keepdims=False}``, or nothing; those of these names stand ``below``."""
    pairs = ", ".join(f"{name}={BELOW if name in below else repr(value)}" for name, value in node.attrs.items())
    return f" {{{pairs}}}" if pairs else ""


def quoted(text: str) -> str:
    """``text`` on one line in JSON's quotes; what cannot be printed as an ASCII escape."""
    return json.dumps(text, ensure_ascii=not text.isprintable())

"""The way from a node to the loss: what lies on it, and why no gradient comes back along it."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from ..errors import GradientError
from ..graph.node import Node
from ..location import CodePosition, Location
from ..values.tables import PlainTable, norm

COLUMNS = ("id", "name", "op", "shape", "from", "value", "gradient", "line")


def explain(nodes: Sequence[Node], start: int, gradients: Iterable[Any], loss: int | None = None) -> PlainTable:
    """One row per node on a path from node ``start`` to the loss.

    The loss is the last node that has a gradient, unless it is given. ``from`` are the parents on the path,
    ``value`` and ``gradient`` 2-norms. Raises GradientError if no node has a gradient.
    """
    known = list(gradients)
    end = _last(known) if loss is None else loss
    path = _path(nodes, start, end)
    line = cache(_line)  # of a loop or a layer many nodes are made at one place
    rows = [_row(nodes[id], known[id], path, line) for id in sorted(path | {start})]
    title = f"from {nodes[start].title} to {nodes[end].title}"
    if known[start] is None:
        title = f"no gradient arrives at {nodes[start].title}: {_reason(nodes, start, end, path)}"
    return PlainTable(title, COLUMNS, rows)


def _last(gradients: Sequence[Any]) -> int:
    reached = [id for id, g in enumerate(gradients) if g is not None]
    if not reached:
        raise GradientError("explain: argument 'grads': expected the gradients of a loss, got none at any node")
    return reached[-1]


def _path(nodes: Sequence[Node], start: int, end: int) -> set[int]:
    """The nodes that depend on ``start`` and that ``end`` depends on, both included; empty if there is no path."""
    after = {start}
    for node in nodes[start + 1 : end + 1]:
        if not after.isdisjoint(node.parents):
            after.add(node.id)
    if end not in after:
        return set()
    path, stack = {end}, [end]
    while stack:
        found = {p for p in nodes[stack.pop()].parents if p in after} - path
        path |= found
        stack += found
    return path


def _line(place: CodePosition | None) -> str | None:
    return None if place is None else str(Location.of(place))


def _row(node: Node, gradient: Any, path: set[int], line: Callable[[CodePosition | None], Any]) -> dict[str, Any]:
    return {
        "id": node.id,
        "name": node.name,
        "op": node.op_name,
        "shape": node.value.sizes,
        "from": ", ".join(str(p) for p in dict.fromkeys(node.parents) if p in path),
        "value": norm(node.value.array),
        "gradient": None if gradient is None else norm(gradient.numpy()),
        "line": line(node.place),
    }


def _reason(nodes: Sequence[Node], start: int, end: int, path: set[int]) -> str:
    node, loss = nodes[start], nodes[end]
    if not path:
        return f"{loss.title}, the loss, does not depend on it"
    if node.value.dtype.kind != "f":
        return f"{node.value.dtype} has no gradient"
    if not node.requires_grad:
        return "it was made not to require one" if node.op is None else "it depends on no leaf that requires one"
    stops = _stops(nodes, start, path)
    return f"nothing comes back through {', '.join(nodes[id].title for id in stops)}, which has no gradient there"


def _stops(nodes: Sequence[Node], start: int, path: set[int]) -> list[int]:
    """The nodes on the path that pass nothing to a parent which could use it."""
    open, stops = {start}, list[int]()
    for id in sorted(path - {start}):
        node = nodes[id]
        fed = [needed for parent, needed in zip(node.parents, node.needs, strict=True) if parent in open]
        if any(fed):
            open.add(id)
        elif fed:
            stops.append(id)
    return stops

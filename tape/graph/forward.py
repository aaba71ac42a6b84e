"""The forward sweep: tangents flow from parents to children in increasing id."""

from collections.abc import Sequence
from typing import Any

from .backward import Lift, lifted
from .node import Node


def push(nodes: Sequence[Node], tangents: dict[int, Any], start: int, stop: int, lift: Lift) -> None:
    """Extend tangents, by node id, from the nodes below ``start`` to those up to ``stop``, in place.

    A node whose tangent is zero, or that has none, gets no entry.
    """
    for id in range(start, stop + 1):
        node = nodes[id]
        if node.op is None:
            continue
        given = [None if source is None else tangents.get(source.id) for source in node.sources]
        made = node.op.push(given, lifted(node, lift), lift(id), node.attrs)
        if made is not None:
            tangents[id] = made

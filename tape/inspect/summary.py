"""Nodes as a table."""

from collections.abc import Sequence
from math import prod
from typing import Any

from ...screen.showing import LateRows, counted, size
from ..graph.node import Node
from ..values.tables import PlainTable

COLUMNS = ("id", "name", "op", "shape", "dtype", "parents", "bytes", "grad")


def summary(title: str, nodes: Sequence[Node]) -> PlainTable:
    """One row per node: id, name, op, shape, dtype, parents, bytes, whether it requires a gradient."""
    return PlainTable(title, COLUMNS, [_row(node) for node in nodes])


def overview(title: str, nodes: Sequence[Node]) -> PlainTable:
    """The same to be shown at once: its title has the totals, and rows that are not shown are not made."""
    trained = sum(prod(node.value.sizes) for node in nodes if node.op is None and node.requires_grad)
    totals = f"{counted(len(nodes), 'node')}, {size(sum(map(_bytes, nodes)))}, {trained:,} elements to train"
    return PlainTable(f"{title}: {totals}", COLUMNS, LateRows(range(len(nodes)), lambda i: _row(nodes[i])))


def _bytes(node: Node) -> int:
    return prod(node.value.sizes) * node.value.dtype.itemsize


def _row(node: Node) -> dict[str, Any]:
    shape, dtype = node.value.sizes, node.value.dtype
    return {
        "id": node.id,
        "name": node.name,
        "op": node.op_name,
        "shape": shape,
        "dtype": str(dtype),
        "parents": ", ".join(map(str, node.parents)),
        "bytes": _bytes(node),
        "grad": "yes" if node.requires_grad else "",
    }

"""Nodes as a table."""

from collections.abc import Sequence
from math import prod
from typing import Any

from ..graph.node import Node
from ..values.tables import Table


def summary(title: str, nodes: Sequence[Node]) -> Table:
    """One row per node: id, name, op, shape, dtype, parents, bytes, whether it requires a gradient."""
    columns = ("id", "name", "op", "shape", "dtype", "parents", "bytes", "grad")
    return Table(title, columns, [_row(node) for node in nodes])


def _row(node: Node) -> dict[str, Any]:
    shape, dtype = node.value.sizes, node.value.dtype
    return {
        "id": node.id,
        "name": node.name,
        "op": node.op_name,
        "shape": shape,
        "dtype": str(dtype),
        "parents": ", ".join(map(str, node.parents)),
        "bytes": prod(shape) * dtype.itemsize,
        "grad": "yes" if node.requires_grad else "",
    }

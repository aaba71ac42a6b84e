"""The front of a NODES frame: the values of a step and what made each, as JSON."""

import json
from collections.abc import Sequence
from typing import Any, cast

from .....base.errors import DomainError
from .....base.runs.completed_step import TapeNode
from ..digest import NUMPY_NAMES
from ..limits import Limits, check_marks
from ..schema import canonical_json

_COMMAS = 24  # of a node, on average: eight fields, its sizes and its inputs
_DTYPES = {*NUMPY_NAMES.values()}


def encode_nodes(nodes: Sequence[TapeNode]) -> bytes:
    """The front. Characters that cannot be printed stand as blanks."""
    return canonical_json({"nodes": [_row(node) for node in nodes]})


def decode_nodes(front: bytes, limits: Limits) -> tuple[TapeNode, ...]:
    """Read a front whose CRC is right.

    Raises:
        DomainError: it is no list of nodes, not in its canonical form, or beyond the limits.
    """
    try:
        check_marks(front, limits.json_depth, 3 * limits.nodes + 2, _COMMAS * limits.nodes)
        value = json.loads(front)
        if not isinstance(value, dict) or list(cast(dict[str, Any], value)) != ["nodes"]:
            raise DomainError("expected an object with nodes")
        rows = cast(list[Any], value["nodes"])
        nodes = tuple([_node(row, i) for i, row in enumerate(rows)])
        if encode_nodes(nodes) != front:
            raise DomainError("the JSON is not canonical")
    except (ValueError, TypeError, RecursionError) as error:
        raise DomainError(f"it cannot be read: {error}") from error
    return nodes


def _row(node: TapeNode) -> list[Any]:
    texts = [printable(text) for text in (node.attrs, node.name, node.scope, node.place)]
    return [printable(node.op), node.dtype, list(node.shape), list(node.parents), *texts]


def printable(text: str) -> str:
    """A text with a blank for each character that cannot be printed."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def _node(row: Any, position: int) -> TapeNode:
    op, dtype, shape, parents, *texts = row
    if len(texts) != 4 or not all(isinstance(text, str) for text in (op, *texts)) or dtype not in _DTYPES:
        raise DomainError(f"node {position} has not the fields of a node")
    _require_numbers(shape, 1 << 63, position)
    _require_numbers(parents, position, position)
    return TapeNode(op, dtype, tuple(shape), tuple(parents), *texts)


def _require_numbers(values: Any, below: int, position: int) -> None:
    if type(values) is not list or not all(_is_number(n, below) for n in cast(Sequence[Any], values)):
        raise DomainError(f"node {position}: a size or a parent is out of range")


def _is_number(value: Any, below: int) -> bool:
    return type(value) is int and 0 <= value < below

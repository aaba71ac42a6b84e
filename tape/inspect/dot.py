"""Nodes as a graph in the DOT language, coloured by gradient, scopes drawn as one."""

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Any

from ...showing import cell
from ..errors import DomainError
from ..graph.node import Node
from ..values.tables import statistics

Key = int | str
"""What a node is drawn as: by itself (its id), or with others (the name of their scope)."""

NON_FINITE, ZERO = "#ff00ff", "#9ecae1"
"""Colours of gradients with infinities or NaNs, and of those that are zero; others go from white to red."""


def dot(nodes: Sequence[Node], gradients: Iterable[Any] | None = None, collapse: int | None = None) -> str:
    """The graph: leaves as boxes, scopes (with ``collapse``) as 3d boxes. Raises DomainError."""
    keys = _keys(nodes, collapse)
    members: dict[Key, list[Node]] = {}
    for node in nodes:
        members.setdefault(keys[node.id], []).append(node)
    lines = ["digraph tape {", "  node [shape=ellipse];"]
    colours: Mapping[Key, str] = {}
    if gradients is not None:
        legend, colours = _colours(keys, gradients)
        lines += [f'  label="{legend}";', "  node [style=filled, fillcolor=white];"]
    for key, group in members.items():
        lines.append(_box(key, group, colours.get(key)))
        sources = [keys[parent] for node in group for parent in node.parents]
        sources = sources if collapse is None else list(dict.fromkeys(s for s in sources if s != key))
        lines += [f"  n{members[source][0].id} -> n{group[0].id};" for source in sources]
    return "\n".join([*lines, "}"])


def _keys(nodes: Sequence[Node], collapse: int | None) -> list[Key]:
    if collapse is None:
        return [node.id for node in nodes]
    if collapse < 1:
        raise DomainError(
            f"to_dot: argument 'collapse': expected at least 1 part of a scope's name to keep, got {collapse}"
        )
    scopes = [".".join(scope.split(".")[:collapse]) for scope in _scopes(nodes)]
    return [scope or node.id for scope, node in zip(scopes, nodes, strict=True)]


def _scopes(nodes: Sequence[Node]) -> list[str]:
    """The scope of every node: where it was made or what it is named, else that of its parameters, else of its parent.

    A constant without a name belongs to the first op that uses it.
    """
    scopes = [node.scope or (node.name or "").rpartition(".")[0] for node in nodes]
    for node in nodes:
        if node.op and not scopes[node.id]:
            near = sorted(node.parents, key=lambda p: (nodes[p].op is None, p), reverse=True)
            scopes[node.id] = next((scopes[p] for p in near if scopes[p]), "")
        for parent in node.parents:
            if nodes[parent].op is None and nodes[parent].name is None and not scopes[parent]:
                scopes[parent] = scopes[node.id]
    return scopes


def _box(key: Key, group: Sequence[Node], colour: str | None) -> str:
    node = group[0]
    if isinstance(key, str):
        label, shape = f"{_quoted(key)}\\n{len(group)} nodes", ", shape=box3d"
    else:
        label = f"{node.id}: {_quoted(node.name or node.op_name)}\\n{node.value.sizes}"
        shape = "" if node.op else ", shape=box"
    fill = f', fillcolor="{colour}"' if colour else ""
    return f'  n{node.id} [label="{label}"{shape}{fill}];'


def _quoted(name: str) -> str:
    return name.replace("\\", r"\\").replace('"', r"\"")


def _colours(keys: Sequence[Key], gradients: Iterable[Any]) -> tuple[str, dict[Key, str]]:
    """The legend, and the colour of what has a gradient: by the largest norm of its nodes."""
    norms: dict[Key, float] = {}
    spoiled = set[Key]()
    for key, gradient in zip(keys, gradients, strict=False):  # later nodes have no gradient
        if gradient is not None:
            found = statistics(gradient.numpy())
            norms[key] = max(norms.get(key, 0.0), found["norm"])
            spoiled |= {key} if found["non-finite"] else set()
    positive = [norm for norm in norms.values() if norm > 0]
    low, high = (min(positive), max(positive)) if positive else (1.0, 1.0)
    colours = {key: NON_FINITE if key in spoiled else _colour(norm, low, high) for key, norm in norms.items()}
    return f"gradient norm: white {cell(low)}, red {cell(high)}; blue zero, magenta non-finite", colours


def _colour(norm: float, low: float, high: float) -> str:
    if norm == 0:
        return ZERO
    share = log(norm / low) / log(high / low) if high > low else 1.0
    pale = round(255 * (1 - share))
    return f"#ff{pale:02x}{pale:02x}"

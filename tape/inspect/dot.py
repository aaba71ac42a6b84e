"""Nodes as a graph in the DOT language, coloured by gradient, scopes drawn as one."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log
from typing import Any

import numpy as np

from ...screen.showing import cell, counted
from ..errors import DomainError
from ..graph.node import Node
from ..values.tables import norm

Key = int | str
"""What a node is drawn as: by itself (its id), or with others (the name of their scope)."""

Shapes = dict[tuple[int, ...], None]
"""Different shapes, in the order of their coming."""

_SHAPES = 3
"""How many of them a box names."""

NON_FINITE, ZERO = "#ff00ff", "#9ecae1"
"""Colours of gradients with infinities or NaNs, and of those that are zero; others go from white to red."""


def dot(
    nodes: Sequence[Node],
    gradients: Iterable[Any] | None = None,
    collapse: int | None = None,
    kinds: Mapping[str, str] | None = None,
) -> str:
    """The graph: leaves as boxes, scopes (with ``collapse``), of which ``kinds`` tells, in 3d. Raises DomainError."""
    keys = _keys(nodes, collapse)
    members: dict[Key, list[Node]] = {}
    for node in nodes:
        members.setdefault(keys[node.id], []).append(node)
    lines = ["digraph tape {", "  node [shape=ellipse];"]
    norms, spoiled = _norms(keys, gradients or ())
    colours: Mapping[Key, str] = {}
    if gradients is not None:
        legend, colours = _colours(norms, spoiled)
        lines += [f'  label="{legend}";', "  node [style=filled, fillcolor=white];"]
    ends = _ends(nodes, keys)
    for key, group in members.items():
        label = _of_node(group[0])
        if isinstance(key, str):
            label = _of_scope(key, (kinds or {}).get(key), group, *ends[key], norms.get(key))
        lines.append(_box(group[0], label, colours.get(key), scope=isinstance(key, str)))
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


def _ends(nodes: Sequence[Node], keys: Sequence[Key]) -> dict[Key, tuple[Shapes, Shapes]]:
    """The shapes of what goes into what is drawn as one, and of what comes out of it."""
    found: dict[Key, tuple[Shapes, Shapes]] = {key: ({}, {}) for key in keys}
    for node in nodes:
        for parent in node.parents:
            if keys[parent] != keys[node.id]:
                shape = nodes[parent].value.sizes
                found[keys[node.id]][0][shape] = found[keys[parent]][1][shape] = None
    return found


def _box(node: Node, label: str, colour: str | None, *, scope: bool) -> str:
    shape = ", shape=box3d" if scope else "" if node.op else ", shape=box"
    fill = f', fillcolor="{colour}"' if colour else ""
    return f'  n{node.id} [label="{label}"{shape}{fill}];'


def _of_node(node: Node) -> str:
    return f"{node.id}: {_quoted(node.name or node.op_name)}\\n{node.value.sizes}"


def _of_scope(
    name: str, kind: str | None, group: Sequence[Node], taken: Shapes, given: Shapes, largest: float | None
) -> str:
    """Name and kind, shapes of what goes in and comes out, how much is inside, the largest norm of a gradient."""
    made = given or {group[-1].value.sizes: None}
    trained = sum(node.value.size for node in group if node.op is None and node.requires_grad)
    inside = counted(len(group), "node") + (f", {counted(trained, 'parameter')}" if trained else "")
    shapes = f"{_listed(taken)} -> {_listed(made)}" if taken else _listed(made)
    lines = [f"{name}: {kind}" if kind else name, shapes, inside]
    return "\\n".join(_quoted(line) for line in [*lines, *([] if largest is None else [f"|g| {cell(largest)}"])])


def _listed(shapes: Shapes) -> str:
    shown = ", ".join(map(str, list(shapes)[:_SHAPES]))
    return f"{shown}, …" if len(shapes) > _SHAPES else shown


def _quoted(name: str) -> str:
    return name.replace("\\", r"\\").replace('"', r"\"")


def _norms(keys: Sequence[Key], gradients: Iterable[Any]) -> tuple[dict[Key, float], set[Key]]:
    """Of what has a gradient the largest norm of its nodes, and what has one that is not finite."""
    norms: dict[Key, float] = {}
    spoiled = set[Key]()
    for key, gradient in zip(keys, gradients, strict=False):  # later nodes have no gradient
        if gradient is not None:
            norms[key] = max(norms.get(key, 0.0), norm(gradient.numpy()))
            spoiled |= set() if np.isfinite(gradient.numpy()).all() else {key}
    return norms, spoiled


def _colours(norms: Mapping[Key, float], spoiled: Collection[Key]) -> tuple[str, dict[Key, str]]:
    """The legend, and the colour of what has a gradient."""
    positive = [size for size in norms.values() if size > 0]
    low, high = (min(positive), max(positive)) if positive else (1.0, 1.0)
    colours = {key: NON_FINITE if key in spoiled else _colour(size, low, high) for key, size in norms.items()}
    return f"gradient norm: white {cell(low)}, red {cell(high)}; blue zero, magenta non-finite", colours


def _colour(size: float, low: float, high: float) -> str:
    if size == 0:
        return ZERO
    share = log(size / low) / log(high / low) if high > low else 1.0
    pale = round(255 * (1 - share))
    return f"#ff{pale:02x}{pale:02x}"

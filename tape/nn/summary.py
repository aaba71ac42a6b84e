"""A layer as a table, which is how it prints."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from ..values.tables import PlainTable
from .parameters import Parameters, count


class _Nested(Protocol):
    """What has parameters of its own, and parts that have theirs."""

    def own_parameters(self) -> Parameters: ...

    def children(self) -> Mapping[str, Any]: ...

    def parameters(self) -> Parameters: ...


def summary(layer: _Nested) -> PlainTable:
    """One row for each layer that has no parts, and the total."""
    rows = [*_rows(layer, "")]
    if layer.children():
        rows.append(_row("", "", "total", layer.parameters()))
    return PlainTable("", ("layer", "description", "parameters", "count"), rows)


def _rows(layer: _Nested, name: str) -> Iterator[dict[str, Any]]:
    own, parts = layer.own_parameters(), layer.children()
    if own or not parts:
        shapes = ", ".join(f"{each} {p.shape}" for each, p in own.items())
        yield _row(name or "-", repr(layer), shapes or "-", own)
    for each, part in parts.items():
        yield from _rows(part, f"{name}.{each}" if name else each)


def _row(name: str, description: str, parameters: str, counted: Parameters) -> dict[str, Any]:
    return {"layer": name, "description": description, "parameters": parameters, "count": count(counted)}

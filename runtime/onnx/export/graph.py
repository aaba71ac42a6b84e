"""The ONNX graph as it grows, and one op's view of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....base.arrays import Array
from ....tape.errors import DgrrError
from ....tape.values.spec import Spec


class ExportError(DgrrError, ValueError):
    """An op, or a use of it, that the format cannot say."""


class Graph:
    """Nodes and constants under names of their own."""

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.nodes, self.constants = onnx, list[Any](), list[Any]()
        self._constants: dict[Any, str] = {}

    def node(self, kind: str, *inputs: str, result: int = 0, **attributes: Any) -> str:
        """The name of one of the outputs of a new node, the first or a later one; an empty input is left out."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        outputs = [*[f"{name}_{place}" for place in range(result)], name]
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), outputs, name=name, **attributes))
        return name

    def constant(self, value: Array, name: str = "") -> str:
        """The name of an array; equal arrays without a name of their own are one."""
        key = name or (value.dtype, value.shape, value.tobytes())
        if key not in self._constants:
            made = name or f"constant_{len(self.constants)}"
            self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value, order="C"), made))
            self._constants[key] = made
        return self._constants[key]


@dataclass(frozen=True)
class OpCall:
    """One node of the tape: the names of its inputs in the graph, None for one that is left out, and what is known."""

    graph: Graph
    inputs: Sequence[str | None]
    specs: Sequence[Spec | None]
    attrs: Mapping[str, Any]
    out: Spec

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A new node of the graph."""
        return self.graph.node(kind, *inputs, **attributes)

    @property
    def x(self) -> str:
        """The name of the first input."""
        return self.input(0)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the first input."""
        return self.spec(0).shape

    def input(self, place: int) -> str:
        """The name of an input that is there."""
        name = self.inputs[place]
        assert name is not None, "ops that may do without an input ask for it themselves"
        return name

    def spec(self, place: int) -> Spec:
        """Shape and element type of an input that is there."""
        spec = self.specs[place]
        assert spec is not None, "ops that may do without an input ask for it themselves"
        return spec

    def number(self, value: float) -> str:
        """A scalar of the element type of the result."""
        dtype = self.out.dtype if self.out.floating else self.spec(0).dtype
        return self.graph.constant(np.asarray(value, dtype))

    def sizes(self, *values: int) -> str:
        """A list of whole numbers, as operators take shapes, axes and places."""
        return self.graph.constant(np.asarray(values, np.int64).reshape(-1))


Exporter = Callable[[OpCall], str]
"""Writes one op, and gives the name of its result."""

EXPORTERS: dict[str, Exporter] = {}
"""What writes each op, by its name."""


def exports(*ops: str) -> Callable[[Exporter], Exporter]:
    """Say which ops a function writes."""

    def add(exporter: Exporter) -> Exporter:
        EXPORTERS.update(dict.fromkeys(ops, exporter))
        return exporter

    return add

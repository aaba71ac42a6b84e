"""What graphs are made of - values and nodes - and the content of a graph, which its formats write and read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import Any

import numpy as np

from ...tape.numerics.sizes import Sizes
from ...tape.values.spec import Spec


class Role(StrEnum):
    """What a value is to the step."""

    INPUT = "input"
    """Part of the batch."""
    PARAM = "param"
    """A parameter before the step."""
    STATE = "state"
    """An array of the optimizer's state before the step."""
    MODEL_STATE = "model_state"
    """An array of the model's state before the step, such as a running mean."""
    CONST = "const"
    """Known when the step was recorded, and never changed."""
    STATIC = "static"
    """Produced by a node."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value: its shape, element type and role.

    ``content`` says what a constant is: its one number, or a digest of its elements.
    """

    id: int
    spec: Spec
    role: Role
    name: str = ""
    content: str = ""

    @property
    def shape(self) -> Sizes:
        """Its sizes."""
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its element type."""
        return self.spec.dtype


@dataclass(frozen=True, slots=True)
class IRNode:
    """One op: the values it takes (None for an omitted input) and produces, and its attributes by name.

    Nodes are equal if their content is, attributes to the bit and in their order: 0.0 is not -0.0, 1 is
    neither 1.0 nor True, and nan is nan.
    """

    id: int
    op: str
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    @property
    def reads(self) -> tuple[int, ...]:
        """The inputs that are given."""
        given: Any = self.inputs
        return tuple([i for i in given if i is not None]) if None in given else given

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IRNode) and self._content() == other._content()

    def _content(self) -> tuple[object, ...]:
        return self.id, self.op, self.inputs, self.outputs, self.attrs_shown

    @property
    def attrs_shown(self) -> tuple[tuple[str, str], ...]:
        """The attributes as text, which tells them apart to the bit."""
        return tuple([(name, repr(value)) for name, value in self.attrs.items()]) if self.attrs else ()


@dataclass(frozen=True)
class GraphContent:
    """The content of a graph. ``nodes`` are in the order of execution; the order of the mappings means nothing.

    ``outputs`` names what the caller reads: "loss", and ``gradient_name(id)`` for the gradient of a value;
    ``updates`` maps a parameter or state value to the value that takes its place after the step.
    """

    name: str
    values: Mapping[int, Value]
    nodes: tuple[IRNode, ...]
    outputs: Mapping[str, int]
    updates: Mapping[int, int]

    def with_role(self, role: Role) -> Iterator[Value]:
        """The values of one role, by id."""
        return iter(sorted([value for value in self.values.values() if value.role is role], key=attrgetter("id")))


def gradient_name(id: int) -> str:
    """The output that is the gradient of a value."""
    return f"grad %{id}"


def dtype_named(name: str) -> np.dtype[Any] | None:
    """The type of numbers or bools whose name, as numpy prints it, is ``name``; None if there is none.

    >>> dtype_named("float32"), dtype_named("f4")
    (dtype('float32'), None)
    """
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        return None
    return dtype if dtype.kind in "biuf" and str(dtype) == name else None

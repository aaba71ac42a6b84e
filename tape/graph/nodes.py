"""The store of a tape: its nodes in order, and how they are found."""

from collections.abc import Iterator
from itertools import count
from operator import index
from typing import Any

from ..errors import ShapeError, TapeError
from ..record.kinds import MISFIT, Kind, integer, shown
from ..values.tensor import AnyTensor
from ..values.unique import Unique
from ..var.var import SomeVar, Var
from .backward import named
from .node import Node

_numbers = count(1)

SIZES = Kind(tuple[int, ...])


class Nodes(Unique):
    """A grow-only list of nodes, found by Var, by id or by name."""

    instead = "its Vars would stay with the first; run the ops on another tape, or take values: x.numpy()"

    def __init__(self) -> None:
        self.number: int = next(_numbers)
        self.generation: int = 0
        self._nodes: list[Node] = []

    def __repr__(self) -> str:
        return f"<Tape #{self.number} with {len(self._nodes)} nodes>"

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def node(self, key: SomeVar[Any] | int | str) -> Node:
        """The node of a Var, an id or a name. Raises TapeError if this tape has no such node."""
        if isinstance(key, SomeVar):
            home: object = key.tape
            if home is not self:
                raise TapeError(f"expected a Var of {self!r}, got node {key.id} of {home!r}")
            if key.generation != self.generation:
                raise TapeError(
                    f"expected a Var of generation {self.generation} of {self!r}, got node {key.id} of generation "
                    f"{key.generation}: the tape was reset since; make its leaves again"
                )
            return self._nodes[key.id]
        if isinstance(key, str):
            return self._nodes[named(self._nodes, key)]
        if integer(key) is MISFIT:
            raise TapeError(f"node: expected a Var, an id or a name, got {shown(key)}")
        id = index(key)
        if not 0 <= id < len(self._nodes):
            raise TapeError(f"node: expected an id from 0 to {len(self._nodes) - 1}, got {key}")
        return self._nodes[id]

    def value(self, key: SomeVar[Any] | int | str) -> AnyTensor:
        """The value of a node. Raises TapeError if this tape has no such node."""
        if isinstance(key, Var) and key.tape is self and key.generation == self.generation:
            value: AnyTensor = self._nodes[key.id].value
            return value
        return self.node(key).value  # pyright: ignore[reportUnknownArgumentType]

    def alike(self, a: SomeVar[Any], b: SomeVar[Any]) -> bool:
        """Whether two Vars are of this tape, as it is now, and have values of one shape and element type."""
        if a.tape is not self or b.tape is not self or not a.generation == b.generation == self.generation:
            return False
        return self._nodes[a.id].value.spec is self._nodes[b.id].value.spec

    def require_value(self, key: SomeVar[Any] | int | str, shape: tuple[int, ...]) -> AnyTensor:
        """The value of a node that must have the given shape. Raises ShapeError if it has another."""
        value, shape = self.value(key), SIZES("require_value: argument 'shape'", shape)
        if value.sizes != tuple(shape):
            raise ShapeError(
                f"require_value: node {self.node(key).id}: expected shape {tuple(shape)}, got {value.sizes}"
            )
        return value

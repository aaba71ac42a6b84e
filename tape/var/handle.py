"""Handles to nodes: what a tape, an id and a generation give without a word about shapes."""

from typing import Any, Generic, TypeVar

import numpy as np

from ...base.arrays import Array
from ..values.dtypes import DType
from ..values.shape import Shape
from ..values.tensor import AnyTensor
from ..values.unique import Unique

D = TypeVar("D", bound=DType)


class Handle(Unique, Generic[D]):
    """A place on a tape: the base of every `Var`."""

    __slots__ = ("generation", "id", "tape")

    instead = "it is a place on its tape; take its value: x.numpy()"

    def __init__(self, tape: Any, id: int, generation: int) -> None:
        self.tape: Any = tape  # the `Tape`, which stands above
        self.id, self.generation = id, generation

    def __repr__(self) -> str:
        value = self.value
        name = f" {self.name!r}" if self.name else ""
        return f"Var(id={self.id}{name}, shape={tuple(value.shape)}, dtype={value.dtype})"

    @property
    def value(self) -> AnyTensor:
        """The node's value."""
        value: AnyTensor = self.tape.value(self)
        return value

    def numpy(self) -> Array:
        """The value as a read-only numpy array, without a copy."""
        return self.value.array

    def item(self) -> float | int | bool:
        """The value of a one-element node as a Python number."""
        return self.value.item()

    @property
    def shape(self) -> Shape[*tuple[Any, ...]]:
        """Its sizes."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """Its number of axes."""
        return len(self.value.sizes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its element type, a numpy dtype."""
        return self.value.dtype

    @property
    def name(self) -> str | None:
        """The name given when the node was made."""
        name: str | None = self.tape.node(self).name
        return name

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __format__(self, spec: str) -> str:
        """``f"{loss:.3f}"`` for a Var of one element. Raises ShapeError for more."""
        return format(self.item(), spec) if spec else str(self)

    def __len__(self) -> int:
        return len(self.value)

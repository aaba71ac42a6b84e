"""Handles to nodes whatever their shape: the part of a `Var` that its static shape has no say in."""

from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

import numpy as np

from ..values.dtypes import DType
from ..values.shape import Pattern, Shape
from ..values.tensor import AnyTensor, Array

if TYPE_CHECKING:
    from ..graph.hooks import Hook, HookHandle
    from ..tape import Tape
    from .var import Gradual, Var

D = TypeVar("D", bound=DType)
S = TypeVarTuple("S")


class SomeVar(Generic[D]):
    """A Var that has a shape which the type checker does not know: `expect` opens it, `gradual` trusts it.

    Every `Var` is one, so nothing is made or copied; it is what ``tape.var(id)`` is declared to give.

    >>> from dgrr.tape import Dim, Shape, Tape, f64
    >>> class Batch(Dim): ...
    >>> tape = Tape(f64)
    >>> _ = tape.leaf([1.0, 2.0], name="x")
    >>> x = tape.var("x").expect(Shape[Batch])  # a Var[f64, Batch]
    >>> (x + x).numpy()
    array([2., 4.])
    """

    __slots__ = ("generation", "id", "tape")

    def __init__(self, tape: "Tape[Any]", id: int, generation: int) -> None:
        self.tape, self.id, self.generation = tape, id, generation

    @property
    def value(self) -> AnyTensor:
        """The node's value."""
        return self.tape.value(self)

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
    def dtype(self) -> np.dtype[Any]:
        """Its element type, a numpy dtype."""
        return self.value.dtype

    @property
    def name(self) -> str | None:
        """The name given when the node was made."""
        return self.tape.node(self).name

    @overload
    def expect(self, shape: type[Shape[*S]]) -> "Var[D, *S]": ...
    @overload
    def expect(self, shape: tuple[int, ...]) -> "Gradual[D]": ...
    def expect(self, shape: Any) -> Any:
        """The same Var with a shape that was checked now and that the type checker knows from here on.

        A Dim has one size on one tape. Raises ShapeError if the sizes are others.
        """
        self.tape.bind("expect", Pattern.named("expect", shape), self.value.sizes)
        return self

    @property
    def gradual(self) -> "Gradual[D]":
        """The same Var with a shape that is left to the run time."""
        same: Any = self
        return same  # type: ignore[no-any-return]

    def register_hook(self, function: "Hook") -> "HookHandle":
        """Call ``function(gradient)`` in every backward pass; see `Tape.hook`."""
        return self.tape.hook(self.gradual, function)

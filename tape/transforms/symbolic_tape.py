"""Symbolic tapes: a step written in ops is recorded without being run.

The values on such a tape are `Symbol`s, which have a shape and an element type and nothing else; ops infer
instead of compute. Everything else - nodes, VJPs, the reverse sweep - is the ordinary tape's, so a recorded
backward pass (``create_graph=True``) holds the very ops that an eager one computes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ..errors import TapeError
from ..graph.location import Location, caller
from ..record.op import Op
from ..tape import Tape
from ..values.spec import Spec
from ..values.tensor import AnyTensor


class Symbol(AnyTensor):
    """A value that is not known yet."""

    __slots__ = ()

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    @property
    def array(self) -> NoReturn:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """There is none: raises TapeError."""
        place = caller()
        where = "" if place is None else f"; it was read at {Location.of(place)}"
        raise TapeError(
            f"capture: the value of a {self.spec.dtype} tensor of shape {self.spec.shape} was read while the step is "
            "being recorded: a captured step holds ops, not values, so Python cannot branch on them; "
            f"use ops (ops.where, comparisons, slicing), or run the step eagerly{where}"
        )

    def __len__(self) -> int:
        if not self.sizes:
            raise TypeError("len() of a value without axes")
        return self.sizes[0]

    def __repr__(self) -> str:
        return f"Symbol({self.spec.dtype}, {self.spec.shape})"


class SymbolicTape(Tape[Any]):
    """A tape on which ops are recorded and not computed."""

    def symbol(self, spec: Spec, name: str, requires_grad: bool = False) -> Any:
        """A leaf whose value is not known yet."""
        return self.leaf(Symbol(spec), name=name, requires_grad=requires_grad)

    def hook(self, key: Any, function: Any) -> NoReturn:
        """A step that is recorded has none: raises TapeError."""
        raise TapeError(
            f"hook: {self.node(key).title} is of a step that is being recorded: a captured step runs no Python, so it "
            "takes ops in the loss function instead; write the change of the gradient as ops, or run the step eagerly"
        )

    @staticmethod
    def _result(op: Op, values: Sequence[AnyTensor | None], attrs: Mapping[str, Any]) -> AnyTensor:
        return Symbol(op.infer_spec([None if v is None else v.spec for v in values], attrs))

"""Symbolic tapes: what is written in ops is recorded without being run.

The values on such a tape are `Symbol`s, which have a shape and an element type and nothing else; ops infer
instead of compute. Everything else - nodes, VJPs, the reverse sweep - is the ordinary tape's, so a recorded
backward pass (``create_graph=True``) holds the very ops that an eager one computes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ...base.arrays import Array
from ..errors import TapeError
from ..graph.node import Node
from ..graph.symbol import CAPTURE, VMAP, Symbol, Why
from ..location import CodePosition
from ..loops.call import BodyCall
from ..record.op import Op
from ..tape import Tape
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import AnyVar


class SymbolicTape(Tape[Any]):
    """A tape on which ops are recorded and not computed."""

    def __init__(self, why: Why = CAPTURE, *, unrolls: bool = False) -> None:
        """``unrolls`` says whether loops are written out, every step with nodes of its own."""
        super().__init__()
        self._why, self.unrolls = why, unrolls
        self.chooses = not unrolls or why is VMAP
        self.sources: dict[int, Array] = {}
        """The arrays that constants were copied from, by the ids of these."""
        self.held: dict[int, Array] = {}
        """Those of them that are to be read where they lie."""

    def __repr__(self) -> str:
        return f"<tape of {self._why.call}, whose Vars are made of the function's arguments>"

    def symbol(self, spec: Spec, name: str | None, requires_grad: bool = False) -> Any:
        """A leaf whose value is not known yet."""
        return self.leaf(Symbol(spec, self._why), name=name, requires_grad=requires_grad)

    def hook(self, key: Any, function: Any) -> NoReturn:
        """What is recorded has none: raises TapeError."""
        why = self._why
        raise TapeError(
            f"hook: {self.node(key).title} was made while {why.recording}, so it runs no Python and takes ops in the "
            f"function instead; write the change of the gradient as ops, or {why.instead}"
        )

    def _enter(self, call: str, value: Any, shape: Any, name: str | None, requires_grad: bool) -> AnyVar:
        var = super()._enter(call, value, shape, name, requires_grad)
        self._note(var.id, value)
        return var

    def _constant(self, given: Any, value: AnyTensor, place: CodePosition | None) -> Node:
        node = super()._constant(given, value, place)
        self._note(node.id, given)
        return node

    def _note(self, id: int, value: Any) -> None:
        if isinstance(value, np.ndarray):
            self.sources[id] = value

    def _result(self, op: Op, values: Sequence[AnyTensor | None], attrs: Mapping[str, Any]) -> AnyTensor:
        return Symbol(op.infer_spec([None if v is None else v.spec for v in values], attrs), self._why)

    def run_of(self, call: BodyCall) -> Any:
        """What is known of a call that does not run."""
        return call.inferred(self._why)

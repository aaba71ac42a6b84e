"""The backward passes of a tape: from where cotangents start, and what becomes of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, Literal, TypeVar, overload

import numpy.typing as npt

from ..errors import GradientError, ShapeError
from ..record.kinds import shown
from ..values.dtypes import DType
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, Var
from .backward import DenseGrads, Live, cotangent, seed_of, sweep, zeros
from .hooks import Hook, HookHandle, Hooks
from .nodes import Nodes

D = TypeVar("D", bound=DType)

Seed = npt.ArrayLike | AnyTensor | AnyVar | None


class BackwardPasses(Nodes, ABC, Generic[D]):
    """The gradients of a node with respect to all before it; none of it changes the tape unless it is recorded there.

    If the tape checks, a VJP that makes an infinity or a NaN raises NonFiniteError.
    """

    _hooks: Hooks
    _check: bool
    """Whether what is not finite is refused."""

    @abstractmethod
    def const(self, value: Any, shape: Any = None, *, name: str | None = None) -> Any:
        """A leaf without a gradient."""

    @overload
    def backward_dense(
        self, out: AnyVar | int, seed: Seed = None, *, create_graph: Literal[False] = False
    ) -> DenseGrads[AnyTensor]: ...
    @overload
    def backward_dense(
        self, out: AnyVar | int, seed: Seed = None, *, create_graph: Literal[True]
    ) -> DenseGrads[AnyVar]: ...
    def backward_dense(self, out: AnyVar | int, seed: Seed = None, *, create_graph: bool = False) -> DenseGrads[Any]:
        """The gradient of ``out`` with respect to every node, or None where it does not arrive.

        ``seed`` is the cotangent of ``out``; 1 for a scalar. With ``create_graph`` the backward pass is recorded
        on this tape and the result holds Vars, which can be differentiated again.
        Raises GradientError, ShapeError, DTypeError or TapeError.
        """
        return self._backward("backward_dense", out, seed, create_graph)

    @overload
    def backward_dense_from(
        self, cotangents: Sequence[Any], *, create_graph: Literal[False] = False
    ) -> DenseGrads[AnyTensor]: ...
    @overload
    def backward_dense_from(self, cotangents: Sequence[Any], *, create_graph: Literal[True]) -> DenseGrads[AnyVar]: ...
    def backward_dense_from(self, cotangents: Sequence[Any], *, create_graph: bool = False) -> DenseGrads[Any]:
        """`backward_dense` from one initial cotangent, or None, per node; what flows in is added to them.

        Raises GradientError unless there is one entry per node, ShapeError or DTypeError for one that does not fit.
        """
        if not isinstance(cotangents, list | tuple | DenseGrads):
            raise GradientError(f"backward_dense_from: argument 'cotangents': expected a list, got {shown(cotangents)}")
        if len(cotangents) != len(self):
            raise GradientError(
                f"backward_dense_from: argument 'cotangents': expected one entry for each of {len(self)} nodes, "
                f"got {len(cotangents)}"
            )
        checked = [
            None if g is None else cotangent("backward_dense_from", f"cotangents[{node.id}]", node.value, g)
            for node, g in zip(self._nodes, cotangents, strict=True)
        ]
        return self.sweep(checked, len(self) - 1, create_graph)

    def backward_dense_all(self, out: AnyVar | int, seed: Seed = None) -> DenseGrads[AnyTensor]:
        """`backward_dense` with zeros where the gradient does not arrive; no VJP runs for those nodes."""
        grads = list(self._backward("backward_dense_all", out, seed, create_graph=False))
        filled = [zeros(node.value) if g is None else g for node, g in zip(self._nodes, grads, strict=True)]
        return DenseGrads(self._nodes, filled, self.node, {id for id, g in enumerate(grads) if g is None})

    @overload
    def backward(
        self, out: AnyVar | int, seed: Seed = None, *, create_graph: Literal[False] = False
    ) -> dict[int, AnyTensor]: ...
    @overload
    def backward(self, out: AnyVar | int, seed: Seed = None, *, create_graph: Literal[True]) -> dict[int, AnyVar]: ...
    def backward(self, out: AnyVar | int, seed: Seed = None, *, create_graph: bool = False) -> dict[int, Any]:
        """The gradients that arrive, by node id."""
        return self._backward("backward", out, seed, create_graph).reached()

    @overload
    def backward_scalar(self, out: Var[D], *, create_graph: Literal[False] = False) -> DenseGrads[AnyTensor]: ...
    @overload
    def backward_scalar(self, out: Var[D], *, create_graph: Literal[True]) -> DenseGrads[AnyVar]: ...
    def backward_scalar(self, out: Var[D], *, create_graph: bool = False) -> DenseGrads[Any]:
        """`backward_dense` of a scalar, with seed 1. Raises ShapeError unless ``out`` is one."""
        shape = self.value(out).sizes
        if shape != ():
            raise ShapeError(f"backward_scalar: argument 'out': expected shape (), got {shape}; reduce it first")
        return self._backward("backward_scalar", out, None, create_graph)

    def _backward(self, call: str, out: AnyVar | int, seed: Seed, create_graph: bool) -> DenseGrads[Any]:
        node = self.node(out)
        start = seed_of(call, node.value, seed)
        if not node.requires_grad:
            raise GradientError(
                f"{call}: argument 'out': {node.title} depends on no leaf that requires a gradient; "
                "make one with tape.param or tape.leaf"
            )
        cotangents: list[Any] = [None] * len(self)
        cotangents[node.id] = start
        return self.sweep(cotangents, node.id, create_graph)

    def sweep(self, cotangents: list[Any], start: int, create_graph: bool, live: Live = None) -> DenseGrads[Any]:
        """The reverse sweep down from node ``start``, from cotangents that fit."""
        nodes, generation = self._nodes, self.generation

        def lift(id: int) -> Any:
            if not create_graph:
                return nodes[id].value
            var: AnyVar = Var(self, id, generation)
            return var

        accept: Callable[[Any], Any] = self._as_var if create_graph else _as_tensor
        hooked = partial(self._hooks.run, accept=accept) if self._hooks else None
        cotangents = [g if g is None else accept(g) for g in cotangents]
        sweep(self._nodes, cotangents, start, lift, hooked, self._check, live, plain=not create_graph)
        return DenseGrads(self._nodes, cotangents, self.node)

    def hook(self, key: AnyVar | int | str, function: Hook) -> HookHandle:
        """Call ``function(gradient)`` with the gradient of a node, once complete, in every backward pass.

        What it returns, unless None, takes the gradient's place and flows on; under ``create_graph=True`` it gets
        and may return Vars. Nodes come in decreasing id, the hooks of a node in the order in which they were
        added, each given what the one before left. Raises TapeError for a node that is not on the tape,
        GradientError if no gradient can arrive, and, during backward, for a replacement that does not fit.
        """
        return self._hooks.add(self.node(key), function)

    def _as_var(self, g: AnyTensor | AnyVar) -> AnyVar:
        found: AnyVar = Var(self, self.node(g).id, self.generation) if isinstance(g, Var) else self.const(g)
        return found


def _as_tensor(g: AnyTensor | AnyVar) -> AnyTensor:
    return g.value if isinstance(g, Var) else g

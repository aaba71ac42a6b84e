"""The tape: a grow-only record of values and of how each was computed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Generic, Literal, TypeVar, TypeVarTuple, overload

import numpy as np
import numpy.typing as npt

from .backward import DenseGrads, cotangent, named, seed_of, sweep
from .dtypes import FLOATS, DType
from .errors import DTypeError, GradientError, ShapeError, TapeError
from .node import Node
from .op import Op
from .shape import Pattern, Shape
from .show import dot, summary
from .tables import Table
from .tensor import AnyTensor
from .var import AnyVar, Gradual, Var

D = TypeVar("D", bound=DType)
S = TypeVarTuple("S")

_numbers = count(1)

Seed = npt.ArrayLike | AnyTensor | AnyVar | None


class Tape(Generic[D]):
    """A grow-only list of nodes: the id of a node is its index, and parents come before children.

    ``Tape()`` takes arrays of any element type; ``Tape(f32)`` and ``Tape(f64)`` take floats of that one only.
    Ops called with Vars append one node each; an op that fails appends none.

    >>> tape = Tape()
    >>> x = tape.leaf(np.array([1.0, 2.0]), name="x")
    >>> y = (x * x).sum()
    >>> tape.backward_dense(y)[x].numpy()
    array([2., 4.])
    """

    @overload
    def __init__(self: "Tape[Any]") -> None: ...
    @overload
    def __init__(self, dtype: type[D]) -> None: ...
    def __init__(self, dtype: Any = None) -> None:
        self.dtype: type[D] | None = dtype
        self.number = next(_numbers)
        self.generation = 0
        self._nodes: list[Node] = []
        self._dims: dict[object, Any] = {}

    def __repr__(self) -> str:
        return f"<Tape #{self.number} with {len(self._nodes)} nodes>"

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    # ------------------------------------------------------------------ leaves

    @overload
    def leaf(
        self,
        value: npt.ArrayLike,
        shape: type[Shape[*S]],
        *,
        name: str | None = None,
        requires_grad: bool = True,
    ) -> Var[D, *S]: ...
    @overload
    def leaf(
        self, value: npt.ArrayLike, shape: None = None, *, name: str | None = None, requires_grad: bool = True
    ) -> Gradual[D]: ...
    def leaf(self, value: Any, shape: Any = None, *, name: str | None = None, requires_grad: bool = True) -> Any:
        """A new leaf with its own copy of ``value``.

        With ``shape`` the sizes are checked and its Dims bound. Integers and bools never require gradients.
        Raises DTypeError or ShapeError.
        """
        return self._enter("leaf", value, shape, name, requires_grad)

    @overload
    def param(self, value: npt.ArrayLike, shape: type[Shape[*S]], *, name: str | None = None) -> Var[D, *S]: ...
    @overload
    def param(self, value: npt.ArrayLike, shape: None = None, *, name: str | None = None) -> Gradual[D]: ...
    def param(self, value: Any, shape: Any = None, *, name: str | None = None) -> Any:
        """A leaf that is to be trained: floats only. Raises DTypeError for other values."""
        dtype = np.asarray(value).dtype
        if dtype.kind != "f":
            raise DTypeError(f"param: argument 'value': expected float32 or float64, got {dtype}")
        return self._enter("param", value, shape, name, requires_grad=True)

    @overload
    def const(self, value: npt.ArrayLike, shape: type[Shape[*S]], *, name: str | None = None) -> Var[Any, *S]: ...
    @overload
    def const(self, value: npt.ArrayLike, shape: None = None, *, name: str | None = None) -> Gradual[Any]: ...
    def const(self, value: Any, shape: Any = None, *, name: str | None = None) -> Any:
        """A leaf without a gradient: inputs, labels, masks."""
        return self._enter("const", value, shape, name, requires_grad=False)

    def params(self, values: Mapping[str, npt.ArrayLike]) -> dict[str, AnyVar]:
        """A parameter leaf for each entry of a dict, named by its key."""
        return {name: self.param(value, name=name) for name, value in values.items()}

    def _enter(self, call: str, value: Any, shape: Any, name: str | None, requires_grad: bool) -> AnyVar:
        tensor = value if isinstance(value, AnyTensor) else AnyTensor.leaf(value, f"{call}: argument 'value'")
        if self.dtype is not None and tensor.dtype in FLOATS and tensor.dtype != self.dtype.dtype:
            raise DTypeError(
                f"{call}: argument 'value': expected {self.dtype.dtype} on this tape, got {tensor.dtype}; "
                "convert with .astype first"
            )
        if shape is not None:
            self.bind(call, Pattern.named(shape), tensor.sizes)
        return self._append(None, {}, tensor, (), (), (), requires_grad and tensor.dtype in FLOATS, name)

    def bind(self, call: str, pattern: Pattern, sizes: tuple[int, ...]) -> None:
        """Unify a named shape with sizes; its Dims keep their sizes on this tape. Raises ShapeError."""
        known = pattern.unify(sizes, self._dims)
        if known is None:
            raise ShapeError(f"{call}: expected shape {pattern.render(self._dims)}, got {sizes}")
        self._dims = known

    # ------------------------------------------------------------------ nodes

    def node(self, key: AnyVar | int | str) -> Node:
        """The node of a Var, an id or a name. Raises TapeError if this tape has no such node."""
        if isinstance(key, Var):
            if key.tape is not self:
                raise TapeError(f"expected a Var of {self!r}, got node {key.id} of {key.tape!r}")
            if key.generation != self.generation:
                raise TapeError(
                    f"expected a Var of generation {self.generation} of {self!r}, got node {key.id} of generation "
                    f"{key.generation}: the tape was reset since; make its leaves anew"
                )
            return self._nodes[key.id]
        if isinstance(key, str):
            return self._nodes[named(self._nodes, key)]
        if not 0 <= key < len(self._nodes):
            raise TapeError(f"node: expected an id from 0 to {len(self._nodes) - 1}, got {key}")
        return self._nodes[key]

    def value(self, key: AnyVar | int | str) -> AnyTensor:
        """The value of a node. Raises TapeError if this tape has no such node."""
        return self.node(key).value

    def require_value(self, key: AnyVar | int | str, shape: tuple[int, ...]) -> AnyTensor:
        """The value of a node that must have the given shape. Raises ShapeError if it has another."""
        value = self.value(key)
        if value.sizes != tuple(shape):
            raise ShapeError(
                f"require_value: node {self.node(key).id}: expected shape {tuple(shape)}, got {value.sizes}"
            )
        return value

    def var(self, key: int | str) -> AnyVar:
        """The Var of a node, by id or name."""
        return Var(self, self.node(key).id, self.generation)

    def reset(self) -> None:
        """Forget every node and every size of a Dim. Vars made before are refused from now on."""
        self._nodes, self._dims = [], {}
        self.generation += 1

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> AnyVar:
        """Compute an op and append its node; operands that are no Vars become constants before it."""
        nodes = [self.node(x) if x.__class__ is Var else None for x in inputs]
        given = [node.value if node else x for node, x in zip(nodes, inputs, strict=True)]
        values = given if None not in nodes else op.tensors(given)
        out = self._result(op, values, attrs)
        for i, value in enumerate(values):
            if nodes[i] is None and value is not None:
                nodes[i] = self._nodes[self._append(None, {}, value, (), (), (), False, None).id]
        parents = tuple([node.id for node in nodes if node is not None])
        if out.dtype.kind == "f":
            needs = [
                node is not None and node.requires_grad and smooth
                for node, smooth in zip(nodes, op.smooth, strict=True)
            ]
        else:
            needs = [False] * len(nodes)
        return self._append(op, attrs, out, parents, values, needs, True in needs, None)

    def _result(self, op: Op, values: Sequence[AnyTensor | None], attrs: Mapping[str, Any]) -> AnyTensor:
        return op.compute(values, attrs)

    def _append(
        self,
        op: Op | None,
        attrs: Mapping[str, Any],
        value: AnyTensor,
        parents: tuple[int, ...],
        inputs: Sequence[AnyTensor | None],
        needs: Sequence[bool],
        requires_grad: bool,
        name: str | None,
    ) -> AnyVar:
        id = len(self._nodes)
        self._nodes.append(Node(id, op, attrs, value, parents, inputs, needs, requires_grad, name))
        return Var(self, id, self.generation)

    # ------------------------------------------------------------------ backward

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
        if len(cotangents) != len(self):
            raise GradientError(
                f"backward_dense_from: argument 'cotangents': expected one entry for each of {len(self)} nodes, "
                f"got {len(cotangents)}"
            )
        where = "backward_dense_from"
        checked = [
            None if g is None else cotangent(where, f"cotangents[{i}]", self._nodes[i].value, g)
            for i, g in enumerate(cotangents)
        ]
        return self._sweep(checked, len(self) - 1, create_graph)

    def backward_dense_all(self, out: AnyVar | int, seed: Seed = None) -> DenseGrads[AnyTensor]:
        """`backward_dense` with zeros where the gradient does not arrive; no VJP runs for those nodes."""
        grads = list(self._backward("backward_dense_all", out, seed, create_graph=False))
        filled = [self._zeros(node) if g is None else g for node, g in zip(self._nodes, grads, strict=True)]
        return DenseGrads(self._nodes, filled, self.node)

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
                f"{call}: argument 'out': node {node.id} ({node.op_name}) depends on no leaf that requires a gradient; "
                "make one with tape.param or tape.leaf"
            )
        cotangents: list[Any] = [None] * len(self)
        cotangents[node.id] = start
        return self._sweep(cotangents, node.id, create_graph)

    def _sweep(self, cotangents: list[Any], start: int, create_graph: bool) -> DenseGrads[Any]:
        lift: Callable[[int], Any] = self.var if create_graph else self._tensor_of
        cotangents = [g if g is None else self._as_var(g) if create_graph else _as_tensor(g) for g in cotangents]
        sweep(self._nodes, cotangents, start, lift)
        return DenseGrads(self._nodes, cotangents, self.node)

    def _tensor_of(self, id: int) -> AnyTensor:
        return self._nodes[id].value

    def _as_var(self, g: AnyTensor | AnyVar) -> AnyVar:
        return self.var(self.node(g).id) if isinstance(g, Var) else self.const(g)

    def _zeros(self, node: Node) -> AnyTensor | None:
        value = node.value
        return AnyTensor(np.zeros(value.sizes, value.dtype)) if value.dtype in FLOATS else None

    # ------------------------------------------------------------------ looking

    def summary(self) -> Table:
        """One row per node: id, name, op, shape, dtype, parents, bytes."""
        return summary(repr(self), self._nodes)

    def to_dot(self) -> str:
        """The graph in the DOT language, leaves as boxes."""
        return dot(self._nodes)


def _as_tensor(g: AnyTensor | AnyVar) -> AnyTensor:
    return g.value if isinstance(g, Var) else g

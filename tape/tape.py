"""The tape: a grow-only record of values and of how each was computed."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, Generic, Literal, TypeVar, TypeVarTuple, cast, overload

import numpy as np
import numpy.typing as npt

from .errors import DomainError, DTypeError, ShapeError
from .graph.hooks import Hooks
from .graph.node import NO_ATTRIBUTES, Node
from .graph.nonfinite import require_finite_value
from .inspect.inspection import Inspection
from .location import CodePosition, caller
from .loops.call import BodyCall
from .loops.record import record_call
from .record.kinds import Kind
from .record.op import Op
from .values.by_name import require_flat
from .values.dtypes import FLOATS, DType
from .values.shape import Pattern, Shape
from .values.tensor import AnyTensor, as_array
from .var.var import AnyVar, Gradual, SomeVar, Var

D = TypeVar("D", bound=DType)
S = TypeVarTuple("S")

TRUTH = Kind(bool)

Check = Literal["finite"] | None


class Tape(Inspection[D], Generic[D]):
    """A grow-only list of nodes: the id of a node is its index, and parents come before children.

    ``Tape()`` takes arrays of any element type; ``Tape(f32)`` and ``Tape(f64)`` take floats of that one only.
    Ops called with Vars append one node each; an op that fails appends none.

    With ``check="finite"`` an op or a VJP that makes an infinity or a NaN raises NonFiniteError and appends
    nothing. Each node notes the user's line that made it, unless ``locations=False`` (0.3 us less for an op).

    >>> tape = Tape()
    >>> x = tape.leaf(np.array([1.0, 2.0]), name="x")
    >>> y = (x * x).sum()
    >>> tape.backward_dense(y)[x].numpy()
    array([2., 4.])
    """

    @overload
    def __init__(self: "Tape[Any]", *, check: Check = None, locations: bool = True) -> None: ...
    @overload
    def __init__(self, dtype: type[D], *, check: Check = None, locations: bool = True) -> None: ...
    def __init__(self, dtype: Any = None, *, check: Check = None, locations: bool = True) -> None:
        if check is not None and not (isinstance(cast(object, check), str) and check == "finite"):
            raise DomainError(f"Tape: argument 'check': expected 'finite' or None, got {check!r}")
        super().__init__()
        self.dtype: type[D] | None = dtype
        self._check, self._locations = check == "finite", locations
        self._dims: dict[object, Any] = {}
        self._scope = ""
        self._kinds = {}
        self._hooks = Hooks()

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
        dtype = (value if value.__class__ is np.ndarray else as_array(value, "param: argument 'value'")).dtype
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
        """A parameter leaf for each entry of a dict, named by its key.

        Raises DTypeError for anything but floats, and for a dict in the dict.
        """
        require_flat("params: argument 'values'", values)
        return {name: self.param(value, name=name) for name, value in values.items()}

    def _enter(self, call: str, value: Any, shape: Any, name: str | None, requires_grad: bool) -> AnyVar:
        tensor = value if isinstance(value, AnyTensor) else AnyTensor.leaf(value, f"{call}: argument 'value'")
        if self.dtype is not None and tensor.dtype in FLOATS and tensor.dtype != self.dtype.dtype:
            raise DTypeError(
                f"{call}: argument 'value': expected {self.dtype.dtype} on this tape, got {tensor.dtype}; "
                "convert with .astype first"
            )
        if shape is not None:
            self.bind(f"{call}: argument 'value'", Pattern.named(call, shape), tensor.sizes)
        if requires_grad.__class__ is not bool:
            requires_grad = TRUTH(f"{call}: argument 'requires_grad'", requires_grad)
        wanted, place = requires_grad and tensor.spec.floating, caller() if self._locations else None
        node = self._append_leaf(tensor, name, place, requires_grad=wanted)
        return Var(self, node.id, self.generation)

    def bind(self, call: str, pattern: Pattern, sizes: tuple[int, ...]) -> None:
        """Unify a named shape with sizes; its Dims keep their sizes on this tape. Raises ShapeError."""
        self._dims = pattern.require(call, sizes, self._dims)

    # ------------------------------------------------------------------ nodes

    def var(self, key: int | str) -> SomeVar[D]:
        """The Var of a node, by id or name; `SomeVar.expect` gives it a static shape. Raises TapeError if none."""
        found: Gradual[D] = Var(self, self.node(key).id, self.generation)
        return found

    def reset(self) -> None:
        """Forget every node and every size of a Dim. Vars made before are refused from now on."""
        self._nodes, self._dims, self._hooks, self._kinds = [], {}, Hooks(), {}
        self.generation += 1

    @contextmanager
    def scope(self, name: str, kind: str = "") -> Generator[None, None, None]:
        """Nodes made inside belong to the scope ``name``, within the scope that is open: `to_dot` can draw it as one.

        ``kind`` is what `to_dot` says beside the name; layers give their class.

        >>> tape = Tape()
        >>> with tape.scope("encoder"), tape.scope("mlp"):
        ...     x = tape.leaf(1.0)
        >>> tape.node(x).scope
        'encoder.mlp'
        """
        outer = self._scope
        self._scope = f"{outer}.{name}" if outer else name
        if kind:
            self._kinds[self._scope] = kind
        try:
            yield
        finally:
            self._scope = outer

    @contextmanager
    def replacing(self, results: Mapping[int, AnyTensor]) -> Generator[None, None, None]:
        """Inside, some ops give other values than they compute: ``results`` by the number of the op, from 0.

        What is computed from such a value, and its derivatives, have it as if the op had given it.
        Raises ShapeError or DTypeError, when the op is computed, for one that is unlike what it replaces.

        >>> tape = Tape()
        >>> x = tape.param(2.0)
        >>> with tape.replacing({0: AnyTensor(np.array(5.0))}):
        ...     y = (x * 3.0).exp()
        >>> bool(y.item() == np.exp(5.0))
        True
        """
        compute, numbers = self._result, count()

        def like(name: str, made: AnyTensor) -> AnyTensor:
            number = next(numbers)
            given = results.get(number, made)
            if given.sizes != made.sizes:
                raise ShapeError(f"replacing: op {number} ({name}): expected shape {made.sizes}, got {given.sizes}")
            if given.dtype != made.dtype:
                raise DTypeError(f"replacing: op {number} ({name}): expected dtype {made.dtype}, got {given.dtype}")
            return given

        def replaced(op: Op, values: Sequence[AnyTensor | None], attrs: Mapping[str, Any]) -> AnyTensor:
            return like(op.name, compute(op, values, attrs))

        append = self.append_result

        def replaced_result(call: BodyCall, key: str) -> AnyVar:
            made = append(call, key)
            node = self.node(made)
            node.value = like(call.name, node.value)
            return made

        self._result = replaced  # type: ignore[assignment]
        self.append_result = replaced_result  # type: ignore[method-assign]
        try:
            yield
        finally:
            del self._result, self.append_result

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> AnyVar:
        """Compute an op and append its node; operands that are no Vars become constants before it."""
        shape = None
        if op.named:
            attrs, shape = op.resolve(attrs, self._dims)
        generation, nodes, wanted, others = self.generation, self._nodes, False, False
        sources: list[Node | None] = []
        given: list[Any] = []
        for x in inputs:
            if x.__class__ is Var:
                id: int = x.id
                source = nodes[id] if x.tape is self and x.generation == generation else self.node(x)
                sources.append(source)
                given.append(source.value)
                wanted = wanted or source.requires_grad
            else:
                others = others or x is not None
                sources.append(None)
                given.append(x)
        values: Sequence[AnyTensor | None] = op.tensors(given) if others else given
        out = self._result(op, values, attrs)
        place = caller() if self._locations else None
        if self._check:
            require_finite_value(op, values, out, place or caller())
        if shape is not None:
            self.bind(op.where_named, shape, out.sizes)
        if others:
            for i, value in enumerate(values):
                if sources[i] is None and value is not None:
                    sources[i] = self._constant(inputs[i], value, place)
        wanted = wanted and out.spec.floating
        if wanted and op.stops:
            each = zip(sources, op.smooth, strict=True)
            wanted = any(smooth and source is not None and source.requires_grad for source, smooth in each)
        id = len(nodes)
        nodes.append(Node(id, op, attrs, out, tuple(sources), wanted, None, self._scope, place))
        return Var(self, id, generation)

    def _constant(self, given: Any, value: AnyTensor, place: CodePosition | None) -> Node:
        """A new constant of what was given for an input."""
        return self._append_leaf(value, None, place, requires_grad=False)

    # ------------------------------------------------------------------ loops, choices, checkpoints

    unrolls = False
    """Whether they are written out here, every op with a node of its own."""

    chooses = True
    """Whether one of several bodies can run here, or one so often as a value says."""

    record_call = staticmethod(record_call)

    def call_bodies(self, op: str, *call: Any) -> Any:
        """What ops that run functions do with Vars of this tape."""
        return self.record_call(self, op, *call)

    def run_of(self, call: BodyCall) -> Any:
        """The run of a call, on tapes that have nothing else."""
        return call.run_on(partial(Tape, check="finite" if self._check else None, locations=False))

    def append_result(self, call: BodyCall, key: str) -> AnyVar:
        """Append the node of one of a call's results."""
        return call.appended(self, self._nodes, key)

    @property
    def dims(self) -> dict[object, Any]:
        """The sizes of named axes on this tape."""
        return self._dims

    @property
    def scope_name(self) -> str:
        """The dotted name of the scope that is open."""
        return self._scope

    @property
    def checks(self) -> bool:
        """Whether what is not finite is refused."""
        return self._check

    _result = staticmethod(Op.compute)
    """``(op, values, attributes)`` to the value of a node."""

    def _append_leaf(
        self, value: AnyTensor, name: str | None, place: CodePosition | None, *, requires_grad: bool
    ) -> Node:
        """A new leaf."""
        node = Node(len(self._nodes), None, NO_ATTRIBUTES, value, (), requires_grad, name, self._scope, place)
        self._nodes.append(node)
        return node

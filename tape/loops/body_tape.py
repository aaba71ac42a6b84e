"""Where a body is recorded."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

import numpy as np

from ..errors import TapeError
from ..graph.node import NO_ATTRIBUTES, Node
from ..graph.nodes import Nodes
from ..graph.symbol import Symbol, Why
from ..location import caller
from ..record.op import Op
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, Var, is_var


class BodyTape(Nodes):
    """Where a body is recorded: its ops are inferred and not computed.

    What it takes from the tape of the loop becomes a leaf here; a constant that it makes is made there, once for all
    steps. While it is recorded, what is done to Vars of that tape is done here.
    """

    unrolls, chooses = False, True
    """As of a `Tape`: what is asked is asked where the body is written out."""

    def __init__(self, outer: Any, why: Why) -> None:
        """On a tape around it; ``why`` says what records."""
        super().__init__()
        self.outer, self.why, self._ended = outer, why, False
        self.closed: dict[int, tuple[AnyVar, AnyVar]] = {}
        """What is taken from around and the leaf that stands for it, by its id there."""

    def __repr__(self) -> str:
        return f"<the body of a {self.why.call} on {self.outer!r}>"

    @contextmanager
    def recording(self) -> Generator[None, None, None]:
        """Inside, ops on Vars of the tape around are recorded here, and those of no other."""
        self._begin()
        try:
            yield
        finally:
            self._end()
            self._ended = True

    @contextmanager
    def outside(self) -> Generator[None, None, None]:
        """Inside, nothing is recorded here that is not done to Vars of this tape."""
        self._end()
        try:
            yield
        finally:
            self._begin()

    def _begin(self) -> None:
        self.outer.apply, self.outer.call_bodies = self._applied, self._called

    def _applied(self, *call: Any) -> AnyVar:
        return self.apply(*call)  # which may be that of a body within this one

    def _called(self, *call: Any) -> Any:
        return self.call_bodies(*call)

    def _end(self) -> None:
        del self.outer.apply, self.outer.call_bodies

    # ------------------------------------------------------------------ leaves

    def symbol(self, spec: Spec, name: str | None = None, requires_grad: bool = True) -> AnyVar:
        """A leaf whose value is another one in every step."""
        return self._append(None, NO_ATTRIBUTES, Symbol(spec, self.why), (), requires_grad and spec.floating, name)

    def held(self, x: AnyVar) -> AnyVar:
        """A Var of this tape or of one around, as one of this tape. Raises TapeError for one of another tape."""
        if x.tape is self:
            return x
        if isinstance(self.outer, BodyTape):
            x = self.outer.held(x)
        node: Node = self.outer.node(x)
        if node.id not in self.closed:
            self.closed[node.id] = x, self.symbol(node.value.spec, node.name, node.requires_grad)
        return self.closed[node.id][1]

    def const(self, value: Any, shape: Any = None, *, name: str | None = None) -> AnyVar:
        """A constant on the tape around: it is the same in every step."""
        return self.held(self.outer.const(value, shape, name=name))

    def leaf(self, value: Any, shape: Any = None, *, name: str | None = None, requires_grad: bool = True) -> AnyVar:
        """A leaf on the tape around."""
        return self.held(self.outer.leaf(value, shape, name=name, requires_grad=requires_grad))

    def param(self, value: Any, shape: Any = None, *, name: str | None = None) -> AnyVar:
        """A parameter on the tape around."""
        return self.held(self.outer.param(value, shape, name=name))

    # ------------------------------------------------------------------ ops

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> AnyVar:
        """Append the node of an op, on Vars of this tape or of those around. Raises what the op raises."""
        self._require_open()
        shape = None
        if op.named:
            attrs, shape = op.resolve(attrs, self.dims)
        nodes = [None if x is None else self._nodes[x.id] for x in self._operands(op, inputs)]
        made = op.infer_spec([None if node is None else node.value.spec for node in nodes], attrs)
        if shape is not None:
            self.bind(op.where_named, shape, made.shape)
        given = zip(nodes, op.smooth, strict=True)
        wanted = made.floating and any(smooth and node is not None and node.requires_grad for node, smooth in given)
        return self._append(op, attrs, Symbol(made, self.why), tuple(nodes), wanted, None)

    def _operands(self, op: Op, inputs: Sequence[Any]) -> list[AnyVar | None]:
        """The inputs as Vars of this tape: constants are made on the tape around."""
        known = [self.held(x) if is_var(x) else x for x in inputs]
        tensors = op.tensors([self.node(x).value if is_var(x) else x for x in known])

        def placed(x: Any, tensor: AnyTensor | None) -> AnyVar | None:
            if is_var(x):
                return x
            return None if tensor is None else self.const(x if isinstance(x, np.ndarray) else tensor)

        return [placed(x, tensor) for x, tensor in zip(known, tensors, strict=True)]

    def call_bodies(self, *call: Any) -> Any:
        """A loop, a choice or a checkpoint in the body."""
        self._require_open()
        return self.record_call(self, *call)

    @property
    def record_call(self) -> Any:
        """What records these."""
        return self.outer.record_call

    def _append(self, *row: Any) -> AnyVar:
        """Append a node of this row, which `Node` begins with behind the id."""
        id = len(self._nodes)
        whole: list[Any] = [id, *row, self.scope_name, caller()]
        self._nodes.append(Node(*whole))
        return Var(self, id, self.generation)

    def _require_open(self) -> None:
        if self._ended:
            raise TapeError(
                f"{self.why.call}: a Var of the body was used outside of it, where it has no value; "
                "return it from the body"
            )

    # ------------------------------------------------------------------ as of other tapes

    checks = False

    def var(self, id: int) -> AnyVar:
        """The Var of a node."""
        return Var(self, id, self.generation)

    @property
    def dims(self) -> Any:
        """The sizes of named axes."""
        return self.outer.dims

    def bind(self, *call: Any) -> None:
        """Unify a named shape with sizes. Raises ShapeError."""
        self.outer.bind(*call)

    @property
    def scope_name(self) -> str:
        """The dotted name of the scope that is open."""
        name: str = self.outer.scope_name
        return name

    def scope(self, name: str, kind: str = "") -> AbstractContextManager[None]:
        """Nodes made inside belong to a scope."""
        opened: AbstractContextManager[None] = self.outer.scope(name, kind)
        return opened

    def hook(self, key: Any, function: Any) -> NoReturn:
        """A body has none: raises TapeError."""
        raise TapeError(
            f"hook: {self.node(key).title} is in the body of a {self.why.call}, which runs no Python; "
            f"hook what the {self.why.call} gives, or write the change of the gradient as ops"
        )

    # ------------------------------------------------------------------ loops in the body

    def append_result(self, call: Any, key: str) -> AnyVar:
        """Append the node of a result of a loop in the body."""
        made: AnyVar = call.appended(self, self._nodes, key)
        return made

    def run_of(self, call: Any) -> Any:
        """What is known of a loop that does not run here."""
        return call.inferred(self.why)

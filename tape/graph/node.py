"""Nodes: what a tape is made of."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn, Protocol

from ..errors import GradientError, ShapeError
from ..location import CodePosition, Location
from ..record.op import Op
from ..values.tensor import AnyTensor
from ..values.unique import Unique
from ..var.var import Var, shape_of

LEAF = "leaf"
"""The op name of nodes that no op made."""

NO_ATTRIBUTES: Mapping[str, Any] = MappingProxyType({})
"""Their attributes."""


class Loop(Protocol):
    """What has several results, each a node; the first of them passes on the gradients of all."""

    name: str
    first: int
    """The id of the first result."""

    def pull(
        self, cotangents: Sequence[Any], lift: Callable[[int], Any], live: Collection[int] | None
    ) -> list[tuple[int, Any]]:
        """What the cotangents of parents become: ``(parent id, cotangent)``, with what they were before."""
        ...


class Node(Unique):
    """One value on a tape, how it was made, and the way back.

    ``op`` is None for a leaf; ``sources`` are the nodes whose values the op was given, None for an omitted one.
    ``scope`` is the dotted name of the tape's scope that the node was made in, and ``place`` where in the program, if
    the tape notes that.
    """

    instead = "it is a row of its tape; take its value: node.value"

    __slots__ = ("attrs", "id", "name", "op", "place", "requires_grad", "scope", "sources", "value")

    loop: Any = None
    """The loop of which the node is one of several results; None for all others."""

    def __init__(
        self,
        id: int,
        op: Op | None,
        attrs: Mapping[str, Any],
        value: AnyTensor,
        sources: "Sequence[Node | None]",
        requires_grad: bool,
        name: str | None,
        scope: str,
        place: CodePosition | None,
    ) -> None:
        self.id, self.op, self.attrs = id, op, attrs  # of more than three at once Python would make a tuple
        self.value, self.sources, self.requires_grad = value, sources, requires_grad
        self.name, self.scope, self.place = name, scope, place

    def __repr__(self) -> str:
        return f"<{self.title}: {self.value.dtype} {self.value.sizes}>"

    @property
    def parents(self) -> tuple[int, ...]:
        """The ids of the nodes whose values the op was given."""
        return tuple([source.id for source in self.sources if source is not None])

    @property
    def inputs(self) -> list[AnyTensor | None]:
        """The values that the op was given, None for an omitted one."""
        return [None if source is None else source.value for source in self.sources]

    @property
    def needs(self) -> list[bool]:
        """Whether a gradient flows to each of the parents."""
        smooth: Sequence[bool] = self.op.smooth if self.op else ()
        given = zip(self.sources, smooth, strict=True)
        return [self.requires_grad and goes and x.requires_grad for x, goes in given if x is not None]

    @property
    def op_name(self) -> str:
        """The op's name, or "leaf"."""
        return self.op.name if self.op else LEAF

    @property
    def title(self) -> str:
        """What messages call the node: ``node 3 (mul)``, ``node 0 (leaf 'w')``."""
        return f"node {self.id} ({self.op_name}{f' {self.name!r}' if self.name else ''})"

    @property
    def location(self) -> Location | None:
        """The user's line that made the node; None if the tape was told not to note it."""
        return None if self.place is None else Location.of(self.place)

    def backward(self, cotangent: AnyTensor) -> list[tuple[int, AnyTensor]]:
        """The node's local VJP: contributions (parent id, cotangent), for parents that require gradients.

        Raises ShapeError if ``cotangent`` has not the node's shape, GradientError for a wrong contribution.
        """
        if cotangent.sizes != self.value.sizes:
            raise ShapeError(
                f"backward of node {self.id} ({self.op_name}): argument 'cotangent': "
                f"expected shape {self.value.sizes}, got {cotangent.sizes}"
            )
        return self.pull(cotangent, self.inputs, self.value)

    def pull(
        self, g: Any, inputs: Sequence[Any], output: Any, live: Collection[int] | None = None
    ) -> list[tuple[int, Any]]:
        """`backward` on values of any kind: tensors, or Vars when the backward pass itself is recorded.

        With ``live`` only for the parents among these ids.
        """
        if self.op is None:
            return []
        needs = [x is not None and x.requires_grad and (live is None or x.id in live) for x in self.sources]
        found: list[tuple[int, Any]] = []
        for i, made in self.op.pull(g, inputs, output, self.attrs, needs):
            source: Any = self.sources[i]
            if (made.value if made.__class__ is Var else made).spec is not source.value.spec:
                self._refuse(source.value, source.id, made)
            found.append((source.id, made))
        return found

    def _refuse(self, value: AnyTensor, parent: int, contribution: Any) -> NoReturn:
        raise GradientError(
            f"backward of node {self.id} ({self.op_name}): its VJP for parent {parent} must return "
            f"{value.dtype} of shape {value.sizes}, got {contribution.dtype} of shape "
            f"{shape_of(contribution)}; fix the op's vjp"
        )


class ResultNode(Node):
    """One of the results of a loop, which is its op: the attribute ``result`` says which."""

    __slots__ = ("loop",)

    def pull(
        self, g: Any, inputs: Sequence[Any], output: Any, live: Collection[int] | None = None
    ) -> list[tuple[int, Any]]:
        """What this result alone passes on."""
        loop: Loop = self.loop
        return loop.pull([*[None] * self.id, g], inputs.__getitem__, live)

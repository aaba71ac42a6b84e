"""Where a run left the finite numbers: the first infinity or NaN, in the forward or backward pass."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ...base.arrays import Array
from ...base.printed import Printed
from ..errors import NonFiniteError
from ..location import CodePosition, Location
from ..record.op import Op
from ..values.tensor import AnyTensor
from ..var.var import Var
from .node import Node


@dataclass(frozen=True)
class NodeInfo:
    """What a report says about a node; ``inputs`` are the shapes of its op's inputs."""

    id: int
    op: str
    name: str | None
    inputs: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    location: Location | None

    @classmethod
    def of(cls, node: Node) -> "NodeInfo":
        """The facts of a node."""
        inputs = tuple(x.sizes for x in node.inputs if x is not None)
        return cls(node.id, node.op_name, node.name, inputs, node.value.sizes, node.location)

    def __str__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        source = f" from {', '.join(map(str, self.inputs))}" if self.inputs else ""
        at = f", at {self.location}" if self.location else ""
        return f"node {self.id} ({self.op}{name}), shape {self.shape}{source}{at}"


@dataclass(frozen=True)
class NonFiniteReport(Printed):
    """The first non-finite value, or the first non-finite gradient and the child whose contribution brought it.

    ``nans`` and ``infs`` count its elements that are NaN and infinite. ``child`` is None for values, and for a
    gradient that no single contribution spoiled: the seed, a hook, or the sum of finite contributions did.
    """

    what: Literal["value", "gradient"]
    node: NodeInfo
    nans: int
    infs: int
    size: int
    child: NodeInfo | None = None

    def __str__(self) -> str:
        of = "" if self.what == "value" else "of "
        head = f"the first non-finite {self.what} is {of}{self.node}"
        counted = f"{_said(self.nans, self.infs)} of {self.size} elements"
        if self.what == "value":
            return f"{head}; {counted}"
        brought = f"brought by {self.child}" if self.child else "by the seed, a hook or the sum of finite contributions"
        return f"{head}; {counted}; {brought}"


def finite(tensor: AnyTensor) -> bool:
    """Whether no element is infinite or NaN."""
    return tensor.dtype.kind != "f" or bool(np.isfinite(tensor.array).all())


def first_value(nodes: Sequence[Node]) -> NonFiniteReport | None:
    """The first node whose value is not finite; None if every value is."""
    for node in nodes:
        if not finite(node.value):
            return _report("value", node, node.value.array)
    return None


def first_gradient(
    nodes: Sequence[Node], gradients: Sequence[Any], unreached: Collection[int] = ()
) -> NonFiniteReport | None:
    """The gradient that was the first to be not finite on the way back; None if every gradient is.

    VJPs are run again, on values, for children of nodes whose gradient is not finite. What stands in the place
    of gradients that did not arrive (``unreached``) contributed nothing.
    """
    known = [g.value if isinstance(g, Var) else g for g in gradients]
    wrong = {id for id, g in enumerate(known) if g is not None and not finite(g)}
    for id in range(len(known) - 1, -1, -1):
        node, g = nodes[id], known[id]
        if id in wrong:
            return _report("gradient", node, g.array)
        if g is None or id in unreached or wrong.isdisjoint(node.parents):
            continue
        for parent, contribution in node.backward(g):
            if parent in wrong and not finite(contribution):
                return _report("gradient", nodes[parent], known[parent].array, node)
    return None


def _report(what: Literal["value", "gradient"], node: Node, array: Array, child: Node | None = None) -> NonFiniteReport:
    by = None if child is None else NodeInfo.of(child)
    return NonFiniteReport(what, NodeInfo.of(node), *_counts(array), array.size, by)


def _counts(array: Array) -> tuple[int, int]:
    return int(np.isnan(array).sum()), int(np.isinf(array).sum())


def _said(nans: int, infs: int) -> str:
    return " and ".join(f"{n} {word}" for n, word in ((nans, "NaN"), (infs, "inf")) if n)


def require_finite_value(
    op: Op, inputs: Sequence[AnyTensor | None], out: AnyTensor, place: CodePosition | None
) -> None:
    """Raise NonFiniteError if ``op`` made an infinity or a NaN; ``place`` is where it was called."""
    if finite(out):
        return
    given = [x for x in inputs if x is not None]
    before = "" if all(map(finite, given)) else ", of which one had some already"
    at = "" if place is None else f"; at {Location.of(place)}"
    raise NonFiniteError(
        f"{op.name}: expected finite values, as Tape(check='finite') demands, got {_said(*_counts(out.array))} "
        f"of {out.size} elements from inputs {', '.join(str(x.sizes) for x in given)}{before}{at}"
    )


def require_finite_contribution(child: Node, parent: Node, contribution: Any) -> None:
    """Raise NonFiniteError if the VJP of ``child`` made an infinity or a NaN for ``parent``."""
    tensor = contribution.value if isinstance(contribution, Var) else contribution
    if not finite(tensor):
        raise NonFiniteError(
            f"backward of {NodeInfo.of(child)}: expected finite gradients, as Tape(check='finite') demands, got "
            f"{_said(*_counts(tensor.array))} of {tensor.size} elements for {parent.title}"
        )

"""Two tapes, or two sets of gradients, node by node: the first that differs, to the bit."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from ...base.arrays import Array
from ...base.printed import Printed
from ...base.ulp import exact, same_bits, ulp_distance
from ..graph.backward import DenseGrads
from ..graph.node import Node


@dataclass(frozen=True)
class NodeDifference(Printed):
    """The first node at which two runs differ.

    ``what`` is "value" or "gradient" if an element differs: then ``index`` is the first such element, ``a`` and
    ``b`` are what the two hold there, and ``ulps`` says how many floats they are apart (None if not floats).
    Else ``what`` is what of the nodes differs (op, attributes, parents, shape, …) and ``a`` and ``b`` are that.
    """

    id: int
    op: str
    name: str | None
    what: str
    a: Any
    b: Any
    index: tuple[int, ...] | None = None
    ulps: int | None = None

    def __str__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        head = f"node {self.id} ({self.op}{name}): {self.what}"
        if self.index is None:
            return f"{head}: {self.a} against {self.b}"
        apart = "" if self.ulps is None else f", {self.ulps} ULP apart"
        return f"{head}, element {list(self.index)}: {exact(self.a)} against {exact(self.b)}{apart}"


def compare_tapes(a: Iterable[Node], b: Iterable[Node]) -> NodeDifference | None:
    """The first node whose making or value differs between two tapes; None if they are equal to the bit.

    Every NaN is the same value; -0 and +0 are two.

    >>> import numpy as np
    >>> from dgrr.tape import Tape
    >>> one, other = Tape(), Tape()
    >>> _ = one.leaf(np.float32([1.0, 0.1]), name="w"), other.leaf(np.float32([1.0, 0.3]), name="w")
    >>> print(compare_tapes(one, other))  # doctest: +ELLIPSIS
    node 0 (leaf 'w'): value, element [1]: 0.1 (0x1.99999a0000000p-4, bits 3dcccccd) against 0.3 ... ULP apart
    """
    for x, y in zip_longest(a, b):
        found = _made_differently(x, y) or _first_element(x, "value", x.value.array, y.value.array)
        if found:
            return found
    return None


def compare_grads(a: DenseGrads[Any], b: DenseGrads[Any]) -> NodeDifference | None:
    """The first gradient in backward order, highest id first, that differs; None if all are equal to the bit.

    A node that is made differently comes before that. Every NaN is the same value; -0 and +0 are two.
    """
    for x, y in zip_longest(a.nodes, b.nodes):
        found = _made_differently(x, y)
        if found:
            return found
    for node, g, h in zip(reversed(a.nodes), reversed(list(a)), reversed(list(b)), strict=True):
        if (g is None) != (h is None):
            return NodeDifference(node.id, node.op_name, node.name, "gradient", _there(g), _there(h))
        if g is not None and h is not None:
            found = _first_element(node, "gradient", g.numpy(), h.numpy())
            if found:
                return found
    return None


def _there(x: Any) -> str:
    return "none" if x is None else "one"


def _made_differently(x: Node | None, y: Node | None) -> NodeDifference | None:
    """What two nodes of one id differ in besides their values."""
    node = x or y
    assert node is not None
    if x is None or y is None:
        return NodeDifference(node.id, node.op_name, node.name, "the node", _there(x), _there(y))
    for (what, p), q in zip(_making(x).items(), _making(y).values(), strict=True):
        if p != q:
            return NodeDifference(node.id, node.op_name, node.name, what, p, q)
    return None


def _making(node: Node) -> dict[str, Any]:
    value = node.value
    return {
        "op": node.op_name,
        "attributes": repr(dict(node.attrs)),  # tells -0.0 from 0.0, and NaN equals itself
        "parents": node.parents,
        "shape": value.sizes,
        "dtype": value.dtype.name,
    }


def _first_element(node: Node, what: str, a: Array, b: Array) -> NodeDifference | None:
    """The first element, in row-major order, that differs between two arrays of one shape and type."""
    same = same_bits(a, b)
    if same.all():
        return None
    index = tuple(int(i) for i in np.unravel_index(int(np.argmin(same)), same.shape))
    p, q = a[index], b[index]
    ulps = ulp_distance(p, q) if a.dtype.kind == "f" else None
    return NodeDifference(node.id, node.op_name, node.name, what, p, q, index, ulps)

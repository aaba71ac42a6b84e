"""The reverse sweep: cotangents flow from children to parents in decreasing id, added in that order.

The order is part of the bit contract: a node's cotangent is the sum of its initial cotangent and of the
contributions of its children, the child with the highest id first, and for one child in the order of its
contributions.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Generic, TypeVar, cast

import numpy as np

from ...screen.plotting import Norm, norms
from ...screen.showing import LateRows, counted
from ..errors import DTypeError, GradientError, ShapeError, TapeError
from ..record.op import OPS
from ..values.tables import PlainTable, statistics
from ..values.tensor import AnyTensor
from ..values.unique import Unique
from ..var.var import Var
from .node import Loop, Node
from .nonfinite import NonFiniteReport, first_gradient, require_finite_contribution

G = TypeVar("G")

Lift = Callable[[int], Any]
"""The value of a node as backward passes it to VJPs: the tensor, or a Var when backward is recorded."""

Hooked = Callable[[Node, Any], Any]
"""A node's complete cotangent as its hooks leave it."""

Live = Collection[int] | None
"""The ids that a sweep is confined to; None for all."""

COLUMNS = ("id", "name", "op", "shape", "norm", "min", "max", "zeros", "non-finite")
"""Columns of a table of gradients."""

DESCENDING = COLUMNS[4:]
"""Columns that a table begins with the greatest of."""


def sweep(
    nodes: Sequence[Node],
    cotangents: list[Any],
    start: int,
    lift: Lift,
    hooked: Hooked | None = None,
    check: bool = False,
    live: Live = None,
    plain: bool = False,
) -> None:
    """Push the cotangents of nodes ``start``, ``start - 1``, … 0 to their parents, in place.

    ``plain`` says that ``lift`` gives the nodes' own tensors, which every node has at hand.
    With ``live`` nothing flows to other nodes than these, and the VJPs that would make it flow there are not run.
    Raises GradientError if an op's VJP returns a contribution of the wrong shape or a hook something that does
    not fit; with ``check`` NonFiniteError for a contribution that is infinite or NaN.
    """
    add, last = OPS["add"].call, 0 if live is None else min(live, default=0)
    for id in range(start, last - 1, -1):
        node, g = nodes[id], cotangents[id]
        loop: Loop | None = node.loop
        if loop is not None and loop.first == id:
            if hooked is not None and g is not None:
                cotangents[id] = hooked(node, g)
            for parent, total in loop.pull(cotangents, lift, live):
                if check:
                    require_finite_contribution(node, nodes[parent], total)
                cotangents[parent] = total
            continue
        if g is None:
            continue
        if hooked is not None:
            g = cotangents[id] = hooked(node, g)
        if loop is not None:
            continue
        if not node.requires_grad or node.op is None:
            continue
        inputs, output = (node.inputs, node.value) if plain else (lifted(node, lift), lift(id))
        for parent, contribution in node.pull(g, inputs, output, live):
            if check:
                require_finite_contribution(node, nodes[parent], contribution)
            known = cotangents[parent]
            cotangents[parent] = contribution if known is None else add(known, contribution)


def lifted(node: Node, lift: Lift) -> list[Any]:
    """The inputs of a node as its op's derivatives take them; None for an omitted one."""
    return [None if source is None else lift(source.id) for source in node.sources]


def depending(nodes: Sequence[Node], inputs: Collection[int], stop: int) -> set[int]:
    """The ids up to ``stop`` of ``inputs`` and of what is computed from them."""
    live = set(inputs)
    for id in range(min(live, default=stop), stop + 1):
        if not live.isdisjoint(nodes[id].parents):
            live.add(id)
    return live


def seed_of(call: str, value: AnyTensor, seed: Any) -> Any:
    """The cotangent to begin with: ``seed``, checked, or 1 for a scalar.

    Raises GradientError for a missing seed, ShapeError or DTypeError for one that does not fit.
    """
    if value.dtype.kind != "f":
        raise GradientError(f"{call}: argument 'out': expected float values, got {value.dtype}: no gradient exists")
    if seed is None:
        if value.sizes != ():
            raise GradientError(
                f"{call}: argument 'out': expected a scalar, got shape {value.sizes}; "
                "reduce it first, or give seed= with that shape"
            )
        return _one(value.dtype)
    return cotangent(call, "seed", value, seed)


@cache
def _one(dtype: np.dtype[Any]) -> AnyTensor:
    """What a backward pass from a scalar begins with."""
    return AnyTensor(np.ones((), dtype))


def cotangent(call: str, argument: str, value: AnyTensor, given: Any) -> Any:
    """``given`` as a cotangent of ``value``; a Var stays one. Raises ShapeError or DTypeError if it does not fit."""
    if value.dtype.kind != "f":
        raise GradientError(f"{call}: argument {argument!r}: expected None for {value.dtype}: no gradient exists")
    made: Any = given
    if isinstance(made, int | float):
        made = AnyTensor.number(made, value.dtype)
    if not isinstance(made, (Var, AnyTensor)):
        made = AnyTensor.leaf(made, f"{call}: argument {argument!r}")
    if tuple(made.shape) != value.sizes:
        raise ShapeError(f"{call}: argument {argument!r}: expected shape {value.sizes}, got {tuple(made.shape)}")
    if made.dtype != value.dtype:
        raise DTypeError(f"{call}: argument {argument!r}: expected dtype {value.dtype}, got {made.dtype}")
    return cast(Any, made)


def zeros(value: AnyTensor) -> AnyTensor | None:
    """The gradient of what does not matter; None for a value that has no gradients."""
    return AnyTensor(np.zeros(value.sizes, value.dtype)) if value.dtype.kind == "f" else None


class DenseGrads(Unique, Generic[G]):
    """The gradient, or None where backward did not arrive, of every node of a tape.

    Indexed by Var, by id or by name; iterates in order of ids.
    """

    instead = "they belong to a tape; take the tensors: grads.reached()"

    def __init__(
        self,
        nodes: Sequence[Node],
        gradients: list[G | None],
        owner: Callable[[Any], Node],
        unreached: Collection[int] = (),
    ) -> None:
        """``unreached`` are the nodes whose entry stands for a gradient that did not arrive."""
        self._nodes, self._gradients, self._owner, self._unreached = nodes, gradients, owner, unreached

    def __len__(self) -> int:
        return len(self._gradients)

    def __iter__(self) -> Iterator[G | None]:
        return iter(self._gradients)

    def __getitem__(self, key: Any) -> G | Any:
        """The gradient of a node, or None where backward did not arrive.

        Type checkers ask nobody to look for None first. Raises TapeError for an id, name or Var that these gradients
        do not have.
        """
        return self._gradients[self._id(key)]

    def _id(self, key: Any) -> int:
        if isinstance(key, str):
            return named(self.nodes, key)
        id = key if isinstance(key, int) and not isinstance(key, bool) else self._owner(key).id
        if not 0 <= id < len(self):
            raise TapeError(f"gradients: expected a node id from 0 to {len(self) - 1}, got {id}")
        return id

    def inside(self, key: Any) -> "list[DenseGrads[AnyTensor]]":
        """The gradients of the values in the body of a `scan`, `cond` or `checkpoint`, of which this is a result.

        One for each step, in the order of the rows; of what runs once there is one. Its ids are those of the body:
        Vars that the body had are keys. What a body takes from around has its gradient here. They are made when they
        are asked for. Raises TapeError for other nodes, and for those of a captured step.

        >>> from dgrr.tape import Tape, ops
        >>> tape, seen = Tape(), []
        >>> def body(h, x):
        ...     seen.append(ops.sin(h * x))
        ...     return seen[0], None
        >>> last, _ = ops.scan(body, tape.param(0.5), tape.const(np.array([1.0, 2.0, 3.0])))
        >>> [round(step[seen[0]].item(), 3) for step in tape.backward_scalar(last).inside(last)]
        [-2.667, -2.321, 1.0]
        """
        node = self._nodes[self._id(key)]
        if node.loop is None:
            raise TapeError(f"inside: expected a result of a scan, a cond or a checkpoint, got {node.title}")
        found = {one.attrs["result"]: self._gradients[one.id] for one in self.nodes if one.loop is node.loop}
        made: Any = {name: g.value if isinstance(g, Var) else g for name, g in found.items() if g is not None}
        return node.loop.inside(made)  # type: ignore[no-any-return]

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes, one for each gradient."""
        return self._nodes[: len(self)]

    def reached(self) -> dict[int, G]:
        """The gradients that exist, by node id."""
        return {id: g for id, g in enumerate(self._gradients) if g is not None}

    def table(self, sort: str | None = None, *, op: str = "*", name: str = "*", nonfinite: bool = False) -> PlainTable:
        """One row per node that has a gradient: name, op, shape, and the statistics of the gradient.

        ``sort`` is a column: statistics from the greatest down, the others upwards; by default in order of ids.
        ``op`` and ``name`` are patterns such as ``"encoder.*"``; ``nonfinite`` leaves only rows with an infinity
        or a NaN. Raises DomainError for a column that is not there.
        """
        rows = [self._row(id, g) for id, g in self.reached().items() if self._matches(id, op, name)]
        table = PlainTable("gradients", COLUMNS, [row for row in rows if row["non-finite"] or not nonfinite])
        return table if sort is None else table.sorted(sort, descending=sort in DESCENDING)

    def __repr__(self) -> str:
        return f"<gradients of {counted(len(self), 'node')}, {len(self.reached()):,} reached>"

    def __str__(self) -> str:
        return str(self._overview())

    def _repr_html_(self) -> str:
        """The first and the last gradients in a notebook."""
        return self._overview().to_html()

    def _overview(self) -> PlainTable:
        """To be shown at once: its title has the totals, and rows that are not shown are not made."""
        reached, spoiled = self.reached(), self.first_nonfinite()
        title = f"gradients: {len(reached):,} of {counted(len(self), 'node')} reached, "
        title += "all finite" if spoiled is None else f"the first not finite at node {spoiled.node.id}"
        rows = LateRows(list(reached), lambda id: self._row(id, reached[id]))
        return PlainTable(title, COLUMNS, rows)

    def plot(self, ax: Any = None) -> Any:
        """The norm of every gradient by the id of its node, on a logarithmic scale; gives matplotlib's axes.

        Those of parameters, and other leaves, stand out; a zero stands on the lower edge, and what is not finite, too.
        Points have the names of their nodes, or of the ops that made them, as many as there is room for.

        Args:
            ax: axes to draw on; None makes new ones.

        Raises ModuleNotFoundError where matplotlib is not installed, which comes with ``pip install "dgrr[plot]"``.
        """
        reached = self.reached()
        rows = [statistics(g.numpy()) for g in cast(dict[int, Any], reached).values()]
        nodes = [self._nodes[id] for id in reached]
        values = [math.nan if row["non-finite"] else row["norm"] for row in rows]
        points = [
            Norm(node.id, value, "leaves" if node.op is None else "ops", node.name or node.op_name)
            for node, value in zip(nodes, values, strict=True)
        ]
        return norms("DenseGrads.plot", points, ax)

    def _matches(self, id: int, op: str, name: str) -> bool:
        node = self._nodes[id]
        return fnmatchcase(node.op_name, op) and fnmatchcase(node.name or "", name)

    def first_nonfinite(self) -> NonFiniteReport | None:
        """The gradient that was the first to have an infinity or a NaN on the way back; None if there is none."""
        return first_gradient(self._nodes, self._gradients, self._unreached)

    def _row(self, id: int, gradient: Any) -> dict[str, Any]:
        node = self._nodes[id]
        head = {"id": id, "name": node.name, "op": node.op_name, "shape": node.value.sizes}
        return {**head, **statistics(gradient.numpy())}


def named(nodes: Sequence[Node], name: str) -> int:
    """The id of the one node of that name. Raises TapeError if there is none, or more than one."""
    ids = [node.id for node in nodes if node.name == name]
    if len(ids) != 1:
        have = "no node" if not ids else f"nodes {', '.join(map(str, ids))}"
        raise TapeError(f"name {name!r}: expected one node of that name, got {have}; use the Var or its id")
    return ids[0]

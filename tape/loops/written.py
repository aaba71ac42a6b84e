"""Calls written out: every op has a node of its own. It is how they run eagerly, and what their bits mean."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from .. import ops
from ..errors import DgrrError
from ..graph.backward import DenseGrads, sweep
from ..graph.forward import push
from ..graph.node import Node
from ..location import Location
from ..record.op import OPS
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, shape_of
from .body import Body
from .call import where
from .inside import of_step

Leaves = Mapping[int, AnyVar]
Rows = Sequence[Sequence[AnyVar]]


class WrittenCall(ABC):
    """What a call computes, on a tape: ``leaves`` are what it begins with, by the ids of its inputs, ``rows`` those of
    inputs that are cut, and ``known`` the values of a body.

    Sums flow in the order of the nodes: from the last step to the first, and into what was there before.
    """

    def __init__(self, call: Any, tape: Any, leaves: Leaves, rows: Rows) -> None:
        self.call, self.tape, self.leaves, self.rows = call, tape, leaves, rows
        self._first = len(tape)
        self.compute()
        self._end = len(tape)

    @abstractmethod
    def compute(self) -> None:
        """Make the nodes."""

    @abstractmethod
    def vars(self, key: str) -> list[AnyVar]:
        """The nodes that a result is made of: one, or that of each place."""

    @property
    @abstractmethod
    def steps(self) -> list[tuple[Body, dict[int, AnyVar]]]:
        """Each body that was run, with its values; of a loop by the places of rows."""

    # ------------------------------------------------------------------ results

    def value(self, key: str) -> AnyTensor:
        """A result."""
        values = [x.value for x in self.vars(key)]
        return values[0] if self.call.each(key) is None else _stacked(values)

    def requires(self, key: str) -> bool:
        """Whether a gradient flows through a result."""
        return any(self.tape.node(x).requires_grad for x in self.vars(key))

    # ------------------------------------------------------------------ derivatives

    def pull(self, arrived: Mapping[str, Any], known: dict[int, Any]) -> dict[int, Any]:
        """The cotangents of the call's inputs by their ids, given those of results and those that were there."""
        cotangents = self._swept(arrived, known)
        totals = {id: cotangents[leaf.id] for id, leaf in self.leaves.items()}
        return self._with_rows(cotangents, known | {id: g for id, g in totals.items() if g is not None})

    def inside(self, arrived: Mapping[str, AnyTensor]) -> list[DenseGrads[AnyTensor]]:
        """The gradients of the values of each body that was run, given those of results."""
        cotangents = self._swept(arrived, {})
        return [of_step(self.tape, body, known, cotangents) for body, known in self.steps]

    def _swept(self, arrived: Mapping[str, Any], known: dict[int, Any]) -> list[Any]:
        """The cotangents of all nodes."""
        cotangents: list[Any] = [None] * self._end
        for id, g in known.items():
            if id in self.leaves:
                cotangents[self.leaves[id].id] = g
        for key, g in sorted(arrived.items(), key=lambda item: _order(self.call, item[0])):
            vars = self.vars(key)
            parts = [g] if self.call.each(key) is None else [ops.getitem(g, t) for t in range(len(vars))]
            for x, part in zip(reversed(vars), reversed(parts), strict=True):
                _put(cotangents, x.id, part)
        recorded = any(not isinstance(g, AnyTensor) for g in arrived.values())
        lift = self.tape.var if recorded else self.tape.value
        begins = {x.id for x in (*self.leaves.values(), *[x for row in self.rows for x in row])}
        live = begins | set(range(self._first, self._end))  # down to the leaves, and no further
        sweep(list(self.tape), cotangents, self._end - 1, lift, check=self.tape.checks, live=live)
        return cotangents

    def _with_rows(self, cotangents: Sequence[Any], totals: dict[int, Any]) -> dict[int, Any]:
        """The totals with what flows to the rows of xs, which are slices: each is added to zeros around it."""
        for k in reversed(range(len(self.rows))):
            id = self.call.inputs[self.call.cut[k]].id
            found = [cotangents[x.id] for x in self.rows[k]]
            if any(g is not None for g in found):
                g = placed(found, [x.value.spec for x in self.rows[k]])
                totals[id] = g if id not in totals else OPS["add"](totals[id], g)
        return totals

    def push(self, tangents: Sequence[Any], key: str) -> Any:
        """The tangent of a result, given those of the loop's inputs; None if it is zero."""
        moved: dict[int, Any] = {}
        cut: range = self.call.cut
        for i, (x, tangent) in enumerate(zip(self.call.inputs, tangents, strict=True)):
            if tangent is None:
                continue
            if i in cut:
                moved |= {row.id: ops.getitem(tangent, t) for t, row in enumerate(self.rows[cut.index(i)])}
            else:
                moved[self.leaves[x.id].id] = tangent
        recorded = any(not isinstance(t, AnyTensor) for t in tangents if t is not None)
        lift = self.tape.var if recorded else self.tape.value
        push(list(self.tape), moved, self._first, self._end - 1, lift)
        found = [(moved.get(x.id), x) for x in self.vars(key)]
        if all(t is None for t, _ in found):
            return None
        if self.call.each(key) is None:
            return found[0][0]
        return ops.stack([_zero(x.value.spec) if t is None else t for t, x in found])


def computed(tape: Any, body: Body, known: dict[int, AnyVar], said: str) -> dict[int, AnyVar]:
    """The values of a body on a tape, given its leaves. Raises what an op raises, behind ``said``, with its line."""
    for node in body.nodes:
        if node.op is not None and node.id not in known:
            try:
                known[node.id] = again(tape, node, known)
            except DgrrError as error:
                at = "" if node.place is None or node.loop is not None else f"; at {Location.of(node.place)}"
                raise type(error)(f"{said}{error}{at}") from None
    return known


class WrittenLoop(WrittenCall):
    """The steps of a loop on a tape."""

    def compute(self) -> None:
        """Step after step."""
        loop, body, leaves = self.call, self.call.body, self.leaves
        now: list[AnyVar] = [leaves[x.id] for x in loop.inputs[: loop.cut.start]]
        around: list[AnyVar] = [leaves[x.id] for x in loop.inputs[loop.cut.stop :]]
        self._steps: list[dict[int, AnyVar]] = [{} for _ in range(loop.length)]
        for number, t in enumerate(loop.places):
            inputs: list[AnyVar] = [*now, *[row[t] for row in self.rows], *around]
            given = dict(zip(body.inputs, inputs, strict=True))
            self._steps[t] = computed(self.tape, body, given, where("scan", number, loop.length))
            now = [self._steps[t][id] for id in body.after]
        self._ends = now

    @property
    def steps(self) -> list[tuple[Body, dict[int, AnyVar]]]:
        """The steps, where their rows lie."""
        return [(self.call.body, known) for known in self._steps]

    def vars(self, key: str) -> list[AnyVar]:
        """The nodes that a result is made of: that of the last step, or those of each place."""
        each = self.call.each(key)
        return [self._ends[int(key.split()[1])]] if each is None else [step[each] for step in self._steps]


def alone(call: Any, tape: Any) -> tuple[Any, Leaves, Rows]:
    """A call's inputs on a tape of their own, beside the one that the call is on."""

    def leaf(value: AnyTensor, x: AnyVar) -> AnyVar:
        made: AnyVar = tape.leaf(value, requires_grad=call.tape.node(x).requires_grad)
        return made

    leaves = {x.id: leaf(x.value, x) for i, x in enumerate(call.inputs) if i not in call.cut}
    rows = [
        [leaf(AnyTensor(x.value.array[t, ...]), x) for t in range(shape_of(x)[0])]
        for x in call.inputs[call.cut.start : call.cut.stop]
    ]
    return tape, leaves, rows


def written(call: Any, inputs: Sequence[AnyVar]) -> tuple[Any, Leaves, Rows]:
    """A call's inputs on the tape that these are on, each made a node of its own."""
    leaves: dict[int, AnyVar] = {}
    for i, (x, given) in enumerate(zip(call.inputs, inputs, strict=True)):
        if i not in call.cut and x.id not in leaves:
            leaves[x.id] = ops.reshape(given, shape_of(given))
    rows = [[ops.getitem(x, t) for t in range(shape_of(x)[0])] for x in inputs[call.cut.start : call.cut.stop]]
    return inputs[0].tape, leaves, rows


def again(tape: Any, node: Node, known: dict[int, AnyVar]) -> AnyVar:
    """What a node of a body gives on a tape, for inputs that are known there."""
    inputs = [None if source is None else known[source.id] for source in node.sources]
    made: AnyVar
    if node.loop is None:
        made = tape.apply(node.op, inputs, node.attrs)
        return made
    results = node.loop.on(tape, inputs).vars(list(node.loop.results))
    known.update({id: results[key] for key, id in node.loop.results.items()})
    made = known[node.id]
    return made


def placed(rows: Sequence[Any], specs: Sequence[Spec]) -> Any:
    """The gradient of an array of whose rows these are the gradients, None for a row that got none.

    Of several each is a slice's, added to the zeros that the others have there: -0 becomes +0.
    """
    made: Any = ops.stack([_zero(spec) if g is None else g for g, spec in zip(rows, specs, strict=True)])
    return OPS["add"](made, 0.0) if sum(g is not None for g in rows) > 1 else made


def _order(loop: Any, key: str) -> tuple[bool, int]:
    """In what order gradients of results are added: parts of the last state, then what is stacked, the last first."""
    return loop.each(key) is not None, -loop.results[key]


def _put(cotangents: list[Any], id: int, g: Any) -> None:
    known = cotangents[id]
    cotangents[id] = g if known is None else OPS["add"](known, g)


def _zero(spec: Spec) -> AnyTensor:
    return AnyTensor.number(0.0, spec.dtype, spec.shape)


def _stacked(values: Sequence[AnyTensor]) -> AnyTensor:
    made: AnyTensor = ops.stack(list(values))  # type: ignore[assignment]
    return made

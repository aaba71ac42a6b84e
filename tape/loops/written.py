"""Loops written out: every step has nodes of its own. It is how loops run eagerly, and what their bits mean."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import ops
from ..errors import DgrrError
from ..graph.backward import sweep
from ..graph.forward import push
from ..graph.node import Node
from ..location import Location
from ..record.op import OPS
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, shape_of
from .body import Body

Row = Callable[[int, int], AnyVar]
"""``row(k, t)``: row t of the k-th of xs."""


class WrittenLoop:
    """The steps of a loop on a tape, and the leaves that they begin with, by the ids of a loop's inputs.

    Sums flow in the order of the nodes: from the last step to the first, and into what was there before.
    """

    def __init__(self, loop: Any, tape: Any, leaves: Mapping[int, AnyVar], rows: Sequence[Sequence[AnyVar]]) -> None:
        self.loop, self.tape, self.leaves, self.rows = loop, tape, leaves, rows
        body: Body = loop.body
        now: list[AnyVar] = [leaves[x.id] for x in loop.inputs[: len(body.carry)]]
        around: list[AnyVar] = [leaves[x.id] for x in loop.inputs[len(body.carry) + len(body.xs) :]]
        self._first = len(tape)
        self.steps: list[dict[int, AnyVar]] = [{} for _ in range(loop.length)]
        for t in loop.places:
            inputs: list[AnyVar] = [*now, *[row[t] for row in rows], *around]
            self.steps[t] = self._step(t, dict(zip(body.inputs, inputs, strict=True)))
            now = [self.steps[t][id] for id in body.after]
        self.ends, self._end = now, len(tape)

    def _step(self, t: int, known: dict[int, AnyVar]) -> dict[int, AnyVar]:
        """The values of the body in one step. Raises what an op raises, with the number of the step."""
        for node in self.loop.body.nodes:
            if node.op is not None and node.id not in known:
                try:
                    known[node.id] = again(self.tape, node, known)
                except DgrrError as error:
                    number = self.loop.places.index(t)
                    at = "" if node.place is None else f"; at {Location.of(node.place)}"
                    text = f"scan: step {number} of {self.loop.length}: {error}{at}"
                    raise type(error)(text) from None
        return known

    # ------------------------------------------------------------------ results

    def vars(self, key: str) -> list[AnyVar]:
        """The nodes that a result is made of: that of the last step, or those of each place."""
        each = self.loop.each(key)
        return [self.ends[int(key.split()[1])]] if each is None else [step[each] for step in self.steps]

    def value(self, key: str) -> AnyTensor:
        """A result."""
        values = [x.value for x in self.vars(key)]
        return values[0] if self.loop.each(key) is None else _stacked(values)

    def requires(self, key: str) -> bool:
        """Whether a gradient flows through a result."""
        return any(self.tape.node(x).requires_grad for x in self.vars(key))

    # ------------------------------------------------------------------ derivatives

    def pull(self, arrived: Mapping[str, Any], known: dict[int, Any]) -> dict[int, Any]:
        """The cotangents of the loop's inputs by their ids, given those of results and those that were there."""
        cotangents: list[Any] = [None] * self._end
        for id, g in known.items():
            if id in self.leaves:
                cotangents[self.leaves[id].id] = g
        for key, g in sorted(arrived.items(), key=lambda item: _order(self.loop, item[0])):
            parts = [g] if self.loop.each(key) is None else [ops.getitem(g, t) for t in range(self.loop.length)]
            for x, part in zip(reversed(self.vars(key)), reversed(parts), strict=True):
                _put(cotangents, x.id, part)
        recorded = any(not isinstance(g, AnyTensor) for g in arrived.values())
        self._sweep(cotangents, recorded)
        totals = {id: cotangents[leaf.id] for id, leaf in self.leaves.items()}
        return self._with_rows(cotangents, known | {id: g for id, g in totals.items() if g is not None})

    def _sweep(self, cotangents: list[Any], recorded: bool) -> None:
        """Down to the leaves, and no further."""
        nodes: list[Node] = list(self.tape)
        lift = self.tape.var if recorded else self.tape.value
        begins = {x.id for x in (*self.leaves.values(), *[x for row in self.rows for x in row])}
        live = begins | set(range(self._first, self._end))
        sweep(nodes, cotangents, self._end - 1, lift, check=self.tape.checks, live=live)

    def _with_rows(self, cotangents: Sequence[Any], totals: dict[int, Any]) -> dict[int, Any]:
        """The totals with what flows to the rows of xs, which are slices: each is added to zeros around it."""
        carried = len(self.loop.body.carry)
        for k in reversed(range(len(self.rows))):
            id = self.loop.inputs[carried + k].id
            found = [cotangents[x.id] for x in self.rows[k]]
            if any(g is not None for g in found):
                g = placed(found, [x.value.spec for x in self.rows[k]])
                totals[id] = g if id not in totals else OPS["add"](totals[id], g)
        return totals

    def push(self, tangents: Sequence[Any], key: str) -> Any:
        """The tangent of a result, given those of the loop's inputs; None if it is zero."""
        moved: dict[int, Any] = {}
        carried = len(self.loop.body.carry)
        for i, (x, tangent) in enumerate(zip(self.loop.inputs, tangents, strict=True)):
            if tangent is None:
                continue
            if carried <= i < carried + len(self.rows):
                moved |= {row.id: ops.getitem(tangent, t) for t, row in enumerate(self.rows[i - carried])}
            else:
                moved[self.leaves[x.id].id] = tangent
        recorded = any(not isinstance(t, AnyTensor) for t in tangents if t is not None)
        lift = self.tape.var if recorded else self.tape.value
        push(list(self.tape), moved, self._first, self._end - 1, lift)
        found = [(moved.get(x.id), x) for x in self.vars(key)]
        if all(t is None for t, _ in found):
            return None
        if self.loop.each(key) is None:
            return found[0][0]
        return ops.stack([_zero(x.value.spec) if t is None else t for t, x in found])


def alone(loop: Any, tape: Any) -> WrittenLoop:
    """A loop's steps on a tape of their own, beside the one that the loop is on."""

    def leaf(value: AnyTensor, x: AnyVar) -> AnyVar:
        made: AnyVar = tape.leaf(value, requires_grad=loop.tape.node(x).requires_grad)
        return made

    carried, rows = len(loop.body.carry), len(loop.body.xs)
    lone = [*loop.inputs[:carried], *loop.inputs[carried + rows :]]
    leaves = {x.id: leaf(x.value, x) for x in lone}
    cut = [
        [leaf(AnyTensor(x.value.array[t, ...]), x) for t in range(loop.length)]
        for x in loop.inputs[carried : carried + rows]
    ]
    return WrittenLoop(loop, tape, leaves, cut)


def written(loop: Any, inputs: Sequence[AnyVar]) -> WrittenLoop:
    """A loop's steps on the tape of these inputs, each of which is made a node of its own."""
    carried, rows = len(loop.body.carry), len(loop.body.xs)
    own: dict[int, AnyVar] = {}
    for i, (x, given) in enumerate(zip(loop.inputs, inputs, strict=True)):
        if not carried <= i < carried + rows and x.id not in own:
            own[x.id] = ops.reshape(given, shape_of(given))
    cut = [[ops.getitem(x, t) for t in range(loop.length)] for x in inputs[carried : carried + rows]]
    return WrittenLoop(loop, inputs[0].tape, own, cut)


def again(tape: Any, node: Node, known: dict[int, AnyVar]) -> AnyVar:
    """What a node of a body gives on a tape, for inputs that are known there."""
    parents = iter(node.parents)
    inputs = [None if x is None else known[next(parents)] for x in node.inputs]
    made: AnyVar
    if node.loop is not None:
        made = _of_loop(tape, node.loop, inputs, node.attrs["result"], known)
    else:
        made = tape.apply(node.op, inputs, node.attrs)
    return made


def _of_loop(tape: Any, loop: Any, inputs: Sequence[Any], key: str, known: dict[int, AnyVar]) -> AnyVar:
    """A result of a loop in the body; all of its results are made at once."""
    made = type(loop)(tape, loop.body, inputs, loop.length, loop.reverse).vars(list(loop.results))
    known.update({id: made[key] for key, id in loop.results.items()})
    result: AnyVar = made[key]
    return result


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

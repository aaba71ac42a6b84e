"""One step of the way back through a loop: the reverse sweep through its body."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ..graph.backward import sweep
from ..graph.node import Node
from ..record.op import OPS
from .body import Body
from .call import Lift
from .written import again

Values = Callable[[int], Any]
"""A value of the body in the step that is being swept."""
There = Sequence[tuple[int, Any]]
"""Cotangents by the ids of what they are of, None for none."""


@dataclass
class Swept:
    """What one step of the sweep gives: of the state before, of rows, and of what is taken from around."""

    state: list[Any]
    rows: list[Any]
    around: list[Any]
    reached: set[int]


class StepBack:
    """The steps of a loop as they are swept, given the cotangents of its results."""

    def __init__(self, loop: Any, arrived: Mapping[str, Any], lift: Lift) -> None:
        self.loop, self.lift = loop, lift
        self.body: Body = loop.body
        self.nodes: list[Node] = list(self.body.nodes)
        self.live = loop.run.requiring(loop.body)
        self.tape = next(iter(arrived.values())).tape
        self.invariant = self.body.invariant()
        self.around = loop.inputs[loop.cut.stop :]
        stacks = sorted([key for key in arrived if loop.each(key) is not None], key=lambda key: -loop.results[key])
        every = [(loop.each(key), arrived[key]) for key in stacks]
        self.stacks: list[tuple[int, Any]] = [(value, g) for value, g in every if value not in self.body.after]
        self.handed = [summed([g for value, g in every if value == after]) for after in self.body.after]
        """What arrives at a part of the state because it is stacked, too: it is there before the step behind."""
        self.found: list[dict[int, Any]] = [{} for _ in self.body.xs]
        """What flows to the rows of xs: by the first row that an array is of."""

    def in_a_loop(self) -> bool:
        """Whether the sums of the loop written out are those of a loop backwards: no value has two places in them."""
        body = self.body
        smooth = [i for i, id in enumerate(body.carry) if self.nodes[id].value.spec.floating]
        after, starts = [body.after[i] for i in smooth], [self.loop.inputs[i] for i in smooth]
        given = [x.id for x in starts if self.loop.tape.node(x).requires_grad]
        stacked = {value for value, _ in self.stacks} | {body.after[i] for i in smooth if self.handed[i] is not None}
        if len(set(after)) < len(after) or len(set(given)) < len(given):
            return False
        if {x.id for x in self.around} & set(given) or set(body.closed) & (set(after) | stacked):
            return False
        kept = [k for k in smooth if body.carry[k] in after]
        return not any(body.carry[k] in stacked or body.after[k] in stacked for k in kept)

    def swept(self, values: Values, state: Sequence[Any], rows: Sequence[Any], there: There) -> Swept:
        """The sweep through a step, given the cotangents of the state after it, rows of stacks, and what is there."""
        body, cotangents = self.body, [None] * len(self.nodes)
        stacked = zip([value for value, _ in self.stacks], rows, strict=True)
        for id, g in (*there, *zip(body.after, state, strict=True), *stacked):
            if g is not None:
                cotangents[id] = g if cotangents[id] is None else OPS["add"](cotangents[id], g)
        sweep(self.nodes, cotangents, len(self.nodes) - 1, values, live=self.live)

        def found(ids: Sequence[int]) -> list[Any]:
            return [cotangents[id] if id in self.live else None for id in ids]

        reached = {id for id, g in enumerate(cotangents) if g is not None}
        return Swept(found(body.carry), found(body.xs), found(body.closed), reached)

    def value(self, id: int, tape: Any, value: Values, row: Values, lift: Lift) -> Any:
        """A value of the body in a step: what is the same in all steps, made again if need be, or a row of an array.

        ``row`` and ``lift`` take ids on the tape of the loop.
        """
        body = self.body
        if id in body.closed:
            return lift(self.around[body.closed.index(id)].id)
        if id in self.invariant:
            node = body.tape.node(id)
            return again(tape, node, {parent: value(parent) for parent in node.parents})
        if id in body.xs:
            return row(self.loop.inputs[len(body.carry) + body.xs.index(id)].id)
        return row(self.loop.each_of(id))


def summed(terms: Sequence[Any]) -> Any:
    """The terms added from the first on; None if there is none."""
    return reduce(OPS["add"], terms) if terms else None

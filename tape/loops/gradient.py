"""The gradient of a loop as a loop backwards, for tapes on which nothing is computed.

A step of it is the reverse sweep through the body. It is given the cotangent of the state after the step, the sums of
what has flowed to values from around, and the values of the step that the sweep reads; it gives the cotangents of the
state before the step and of its rows. All sums are those of the loop written out, in the same order: what waits for
nothing starts as -0, to which everything adds as it is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import ops
from ..graph.symbol import SCAN
from ..record.op import OPS
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, shape_of
from .body_tape import BodyTape
from .call import Lift
from .step_back import StepBack, Swept, summed
from .stretch import StretchBack


def looped(loop: Any, arrived: Mapping[str, Any], known: dict[int, Any], lift: Lift) -> dict[int, Any]:
    """The cotangents of a loop's inputs by their ids, given those of results and those that were there."""
    back = _Back(loop, arrived, lift)
    if not back.in_a_loop():
        totals: dict[int, Any] = loop.written([lift(x.id) for x in loop.inputs]).pull(arrived, known)
        return totals
    return back.run(dict(known))


class _Back(StepBack):
    """The way back through a loop: ``order`` is the rows that are left, in the order in which they are swept."""

    def __init__(self, loop: Any, arrived: Mapping[str, Any], lift: Lift) -> None:
        super().__init__(loop, arrived, lift)
        self.order = list(reversed(loop.places))
        self.ends = [arrived.get(f"carry {i}") for i in range(len(self.body.carry))]

    def run(self, totals: dict[int, Any]) -> dict[int, Any]:
        """The cotangents of the loop's inputs by their ids, given those that were there."""
        rows = [self._row(handed, self.order[0]) for handed in self.handed]
        state = [summed([g for g in both if g is not None]) for both in zip(self.ends, rows, strict=True)]
        while self.order and (self.stacks or any(g is not None for g in state)):
            state = self._stretch(state, totals) or self._one(state, totals)
        for x, g in zip(self.loop.inputs, state, strict=False):
            if g is not None:
                totals[x.id] = g
        return self._with_rows(totals)

    def _one(self, state: list[Any], totals: dict[int, Any]) -> list[Any]:
        """The next step alone, with nodes of its own."""
        t = self.order.pop(0)
        known: dict[int, Any] = {}

        def value(id: int) -> Any:
            if id not in known:
                known[id] = self.value(id, self.tape, value, lambda x: self._row(self.lift(x), t), self.lift)
            return known[id]

        before = self.order[0] if self.order else None
        there = [
            (id, totals.get(x.id) if before is None else self._row(handed, before))
            for id, x, handed in zip(self.body.carry, self.loop.inputs, self.handed, strict=False)
        ]
        there += [(id, totals.get(x.id)) for id, x in zip(self.body.closed, self.around, strict=True)]
        made = self.swept(value, state, [self._row(g, t) for _, g in self.stacks], there)
        for x, g in zip(self.around, made.around, strict=True):
            if g is not None:
                totals[x.id] = g
        for k, g in enumerate(made.rows):
            if g is not None:
                self.found[k][t] = ops.reshape(g, (1, *shape_of(g)))
        return made.state

    def _row(self, stack: Any, t: int) -> Any:
        return None if stack is None else ops.getitem(stack, t)

    def _tried(self, state: Sequence[Any]) -> Swept:
        """What a step reaches, found on a tape that nobody keeps."""
        inner = BodyTape(self.tape, SCAN)
        made: dict[int, Any] = {}

        def symbol(id: int) -> Any:
            return inner.symbol(self.body.tape.node(id).value.spec)

        def value(id: int) -> Any:
            if id not in made:
                made[id] = symbol(id)
            return made[id]

        with inner.recording():
            given = [None if g is None else symbol(id) for g, id in zip(state, self.body.after, strict=True)]
            return self.swept(value, given, [symbol(value) for value, _ in self.stacks], [])

    def _stretch(self, state: list[Any], totals: dict[int, Any]) -> list[Any] | None:
        """All steps that are left as one loop; None if the next one is not like those behind it.

        The last one stays if something is at the first state already, to which it adds.
        """
        if len(self.order) < 2:
            return None
        tried = self._tried(state)
        reached = [i for i, g in enumerate(tried.state) if g is not None]
        present = {i for i, g in enumerate(state) if g is not None}
        behind = {*reached, *[i for i, g in enumerate(self.handed) if g is not None]}
        if not present <= behind or any(self.body.after[i] not in tried.reached for i in behind):
            return None
        stays = any(self.loop.inputs[i].id in totals for i in behind)
        order = self.order[:-1] if stays else self.order
        self.order = self.order[len(order) :]
        return StretchBack(self, sorted(order), tried, sorted(behind)).run(state, totals, drop=not self.order)

    def _with_rows(self, totals: dict[int, Any]) -> dict[int, Any]:
        """The totals with what flows to xs, whose rows are slices."""
        for k in reversed(range(len(self.body.xs))):
            x = self.loop.inputs[len(self.body.carry) + k]
            if self.found[k]:
                g = self._whole(k, x)
                totals[x.id] = OPS["add"](totals[x.id], g) if x.id in totals else g
        return totals

    def _whole(self, k: int, x: AnyVar) -> Any:
        """What flows to one of xs, with zeros where nothing does; several slices are added to the zeros of others."""
        parts, t, (n, *row) = list[Any](), 0, shape_of(x)
        while t < n:
            part = self.found[k].get(t, None)
            parts.append(AnyTensor.number(0.0, x.dtype, (1, *row)) if part is None else part)
            t += shape_of(parts[-1])[0]
        made: Any = ops.concat(parts)
        reached = sum(shape_of(part)[0] for part in self.found[k].values())
        return OPS["add"](made, 0.0) if reached > 1 else made

"""Steps in a row as one loop backwards."""

from collections.abc import Callable, Sequence
from typing import Any

from .. import ops
from ..graph.symbol import SCAN
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, shape_of
from .body import Body
from .body_tape import BodyTape
from .step_back import StepBack, Swept


class StretchBack:
    """Steps in a row as one loop backwards: ``rows`` in ascending order, ``state`` the parts of it that are carried."""

    def __init__(self, back: StepBack, rows: list[int], tried: Swept, state: list[int]) -> None:
        self.back, self.rows, self.state = back, rows, state
        self.reached = [i for i, g in enumerate(tried.state) if g is not None]
        self.sums = [k for k, g in enumerate(tried.around) if g is not None]
        self.inner = BodyTape(back.tape, SCAN)
        self.leaves: dict[int, Callable[[], Any]] = {}
        """The arrays whose rows a step takes, to be made outside of it, by the ids of its leaves."""

    def run(self, state: list[Any], totals: dict[int, Any], drop: bool) -> list[Any]:
        """The cotangents of the state before these steps; sums are entered. ``drop`` if nothing comes before them."""
        back, body = self.back, self.back.body
        sums = [totals.get(back.around[k].id) for k in self.sums]
        starts = [state[i] for i in self.state] + sums
        specs = [back.nodes[body.after[i]].value.spec for i in self.state]
        specs += [back.nodes[body.closed[k]].value.spec for k in self.sums]
        begin = [_nothing(back.tape, spec) if g is None else g for g, spec in zip(starts, specs, strict=True)]
        with self.inner.recording():
            carry = [self.inner.symbol(spec) for spec in specs]
            swept = self._swept(carry)
        rows = [k for k, g in enumerate(swept.rows) if g is not None]
        after = [swept.state[i] for i in self.state] + [swept.around[k] for k in self.sums]
        made = self._looped(carry, begin, after, [swept.rows[k] for k in rows])
        for k, total in zip(self.sums, made[len(self.state) :], strict=False):
            totals[back.around[k].id] = total
        for k, whole in zip(rows, made[len(begin) :], strict=True):
            back.found[k][self.rows[0]] = whole
        ends = dict(zip(self.state, made, strict=False))
        return [ends.get(i) if i in self.reached or not drop else None for i in range(len(state))]

    def _swept(self, carry: Sequence[AnyVar]) -> Swept:
        """One step, recorded."""
        back, body = self.back, self.back.body
        known: dict[int, Any] = {}

        def value(id: int) -> Any:
            if id not in known:
                known[id] = back.value(id, self.inner, value, lambda x: self._cut(self._lift(x)), self._lift)
            return known[id]

        given = dict(zip(self.state, carry, strict=False))
        there = [(body.carry[i], self._before(g)) for i, g in enumerate(back.handed) if g is not None]
        there += list(zip([body.closed[k] for k in self.sums], carry[len(self.state) :], strict=True))
        rows = [self._cut(g) for _, g in back.stacks]
        return back.swept(value, [given.get(i) for i in range(len(body.after))], rows, there)

    def _lift(self, id: int) -> Any:
        """A value on the tape of the loop, which is not part of what is recorded here."""
        with self.inner.outside():
            return self.back.lift(id)

    def _cut(self, stack: Any) -> AnyVar:
        """The row of an array that a step takes."""
        first, count = self.rows[0], len(self.rows)
        whole = shape_of(stack)[0] == count
        return self._leaf(lambda: stack if whole else ops.narrow(stack, first, count, 0), stack)

    def _before(self, stack: Any) -> AnyVar:
        """The row of the step before, which has none where there is no step before."""
        first, count, rows = self.rows[0], len(self.rows), shape_of(stack)[0]
        reverse = self.back.loop.reverse
        start = first + 1 if reverse else max(first - 1, 0)
        size = count - int(start + count > rows if reverse else first == 0)

        def moved() -> Any:
            part = ops.narrow(stack, start, size, 0)
            if size == count:
                return part
            none = AnyTensor.number(-0.0, stack.dtype, (1, *shape_of(stack)[1:]))
            return ops.concat([part, none] if reverse else [none, part])

        return self._leaf(moved, stack)

    def _leaf(self, rows: Callable[[], Any], stack: Any) -> AnyVar:
        made = self.inner.symbol(Spec(tuple(shape_of(stack)[1:]), stack.dtype))
        self.leaves[made.id] = rows
        return made

    def _looped(self, carry: list[AnyVar], begin: list[Any], after: list[AnyVar], ys: list[AnyVar]) -> list[Any]:
        """The results of the loop: the state at its end, and its rows."""
        after, ys = [self.inner.held(x) for x in after], [self.inner.held(x) for x in ys]
        read = {parent for node in self.inner for parent in node.parents} | {x.id for x in (*after, *ys)}
        xs = [id for id in self.leaves if id in read]
        self.inner.closed = {id: held for id, held in self.inner.closed.items() if held[1].id in read}
        body = Body.of(self.inner, ys, carry, [self.inner.var(id) for id in xs], after)
        inputs: list[Any] = [*begin, *[self.leaves[id]() for id in xs], *body.around]
        loop = type(self.back.loop)(self.back.tape, body, inputs, len(self.rows), not self.back.loop.reverse)
        keys = [f"carry {i}" for i in range(len(after))] + [f"y {j}" for j in range(len(ys))]
        return list(loop.vars(keys).values())


def _nothing(tape: Any, spec: Spec) -> AnyVar:
    """-0, to which everything adds as it is."""
    made: AnyVar = tape.const(AnyTensor.number(-0.0, spec.dtype, spec.shape))
    return made

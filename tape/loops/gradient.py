"""The gradient of a loop as a loop backwards, for tapes on which nothing is computed.

A step of it is the reverse sweep through the body. It is given the cotangent of the state after the step, the sums of
what has flowed to values from around, and the values of the step that the sweep reads; it gives the cotangents of the
state before the step and of its rows. All sums are those of the loop written out, in the same order: what waits for
nothing starts as -0, to which everything adds as it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from .. import ops
from ..graph.backward import sweep
from ..graph.node import Node
from ..graph.symbol import SCAN
from ..record.op import OPS
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, shape_of
from .body import Body
from .body_tape import BodyTape
from .call import Lift
from .written import again

Values = Callable[[int], Any]
"""A value of the body in the step that is being swept."""
There = Sequence[tuple[int, Any]]
"""Cotangents by the ids of what they are of, None for none."""


def looped(loop: Any, arrived: Mapping[str, Any], known: dict[int, Any], lift: Lift) -> dict[int, Any]:
    """The cotangents of a loop's inputs by their ids, given those of results and those that were there."""
    back = _Back(loop, arrived, lift)
    if not back.in_a_loop():
        totals: dict[int, Any] = loop.written([lift(x.id) for x in loop.inputs]).pull(arrived, known)
        return totals
    return back.run(dict(known))


@dataclass
class _Swept:
    """What one step of the sweep gives: of the state before, of rows, and of what is taken from around."""

    state: list[Any]
    rows: list[Any]
    around: list[Any]
    reached: set[int]


class _Back:
    """The way back through a loop: ``order`` is the rows that are left, in the order in which they are swept."""

    def __init__(self, loop: Any, arrived: Mapping[str, Any], lift: Lift) -> None:
        self.loop, self.lift = loop, lift
        self.body: Body = loop.body
        self.nodes: list[Node] = list(self.body.nodes)
        self.live = loop.run.requiring(loop.body)
        self.order = list(reversed(loop.places))
        self.tape = next(iter(arrived.values())).tape
        self.invariant = self.body.invariant()
        self.around = loop.inputs[len(self.body.carry) + len(self.body.xs) :]
        stacks = sorted([key for key in arrived if loop.each(key) is not None], key=lambda key: -loop.results[key])
        every = [(loop.each(key), arrived[key]) for key in stacks]
        self.stacks: list[tuple[int, Any]] = [(value, g) for value, g in every if value not in self.body.after]
        self.handed = [_sum([g for value, g in every if value == after]) for after in self.body.after]
        """What arrives at a part of the state because it is stacked, too: it is there before the step behind."""
        self.ends = [arrived.get(f"carry {i}") for i in range(len(self.body.carry))]
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

    def run(self, totals: dict[int, Any]) -> dict[int, Any]:
        """The cotangents of the loop's inputs by their ids, given those that were there."""
        rows = [self._row(handed, self.order[0]) for handed in self.handed]
        state = [_sum([g for g in both if g is not None]) for both in zip(self.ends, rows, strict=True)]
        while self.order and (self.stacks or any(g is not None for g in state)):
            state = self._stretch(state, totals) or self._one(state, totals)
        for x, g in zip(self.loop.inputs, state, strict=False):
            if g is not None:
                totals[x.id] = g
        return self._with_rows(totals)

    # ------------------------------------------------------------------ one step

    def swept(self, values: Values, state: Sequence[Any], rows: Sequence[Any], there: There) -> _Swept:
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
        return _Swept(found(body.carry), found(body.xs), found(body.closed), reached)

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

    def _row(self, stack: Any, t: int) -> Any:
        return None if stack is None else ops.getitem(stack, t)

    # ------------------------------------------------------------------ many steps

    def _tried(self, state: Sequence[Any]) -> _Swept:
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
        return _Stretch(self, sorted(order), tried, sorted(behind)).run(state, totals, drop=not self.order)

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


class _Stretch:
    """Steps in a row as one loop backwards: ``rows`` in ascending order, ``state`` the parts of it that are carried."""

    def __init__(self, back: _Back, rows: list[int], tried: _Swept, state: list[int]) -> None:
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

    def _swept(self, carry: Sequence[AnyVar]) -> _Swept:
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


def _sum(terms: Sequence[Any]) -> Any:
    """The terms added from the first on; None if there is none."""
    return reduce(OPS["add"], terms) if terms else None

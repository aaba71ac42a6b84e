"""Derivatives of calls that run a body once, where nothing is computed: calls of the same kind.

Their bodies compute again what they need of the first run. What has reached an input before is the beginning of its
sum, and contributions are added to it in the order of the ops, as if these were no bodies.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.backward import sweep
from ..graph.forward import push
from ..record.op import OPS
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, is_var
from .body import Body, sharing
from .body_tape import BodyTape
from .call import BodyCall, Lift
from .written import again


class _Replay:
    """A body that is recorded once more on a tape around it, as far as its values are asked for."""

    def __init__(self, call: Any, body: Body, tape: Any, lift: Lift) -> None:
        self.inner, self._body, self._lift = BodyTape(tape, call.why), body, lift
        self._given = dict(zip(body.closed, call.taken, strict=True))
        self._made: dict[int, Any] = {}
        self._calls: dict[BodyCall, BodyCall] = {}

    def value(self, id: int) -> Any:
        """A value of the body."""
        if id not in self._made:
            self._made[id] = self._value(id)
        return self._made[id]

    def _value(self, id: int) -> Any:
        if id in self._given:
            with self.inner.outside():
                taken = self._lift(self._given[id].id)
            return self.inner.held(taken)
        node = self._body.tape.node(id)
        parents = {parent: self.value(parent) for parent in node.parents}
        if node.loop is None:
            return again(self.inner, node, parents)
        if node.loop not in self._calls:
            self._calls[node.loop] = node.loop.on(self.inner, [parents[parent] for parent in node.parents])
        key = node.attrs["result"]
        return self._calls[node.loop].vars([key])[key]


def pulled(call: Any, arrived: Mapping[str, Any], known: Mapping[int, Any], lift: Lift) -> dict[int, Any]:
    """The cotangents of a call's inputs by their ids, given those of results and those that were there."""
    tape = next(iter(arrived.values())).tape
    swept = {name: _swept(call, body, tape, arrived, known, lift) for name, body in call.bodies.items()}
    smooth = [x for x in call.taken if call.tape.node(x).requires_grad]
    moved = [x for x in smooth if any(x.id in totals for _, totals in swept.values())]

    def total(inner: BodyTape, totals: Mapping[int, Any], x: AnyVar) -> AnyVar:
        found = totals.get(x.id, known.get(x.id))
        return inner.const(zeros(x.value.spec)) if found is None else inner.held(found)

    sides = {name: (inner, [total(inner, totals, x) for x in moved]) for name, (inner, totals) in swept.items()}
    made = _called(call, tape, lift, sides)
    found = {**known, **{x.id: g for x, g in zip(moved, made, strict=True)}}
    if len(call.bodies) > 1:
        found |= {x.id: tape.const(zeros(x.value.spec)) for x in smooth if x.id not in found}
    return found


def _swept(
    call: Any, body: Body, tape: Any, arrived: Mapping[str, Any], known: Mapping[int, Any], lift: Lift
) -> tuple[BodyTape, dict[int, Any]]:
    """The sweep through a body: where it is recorded, and the cotangents of inputs that it reaches, by their ids."""
    replay, nodes = _Replay(call, body, tape, lift), list(body.nodes)
    cotangents: list[Any] = [None] * len(nodes)
    inner, live = replay.inner, call.run.requiring(body)
    there = {leaf: inner.held(known[x.id]) for leaf, x in zip(body.closed, call.taken, strict=True) if x.id in known}
    with inner.recording():
        for id, g in there.items():
            cotangents[id] = g
        for key in sorted(arrived, key=lambda key: -call.results[key]):
            id, g = call.value_in(body, key), inner.held(arrived[key])
            cotangents[id] = g if cotangents[id] is None else OPS["add"](cotangents[id], g)
        sweep(nodes, cotangents, len(nodes) - 1, replay.value, live=live)
    inputs = zip(body.closed, call.taken, strict=True)
    return inner, {x.id: cotangents[id] for id, x in inputs if cotangents[id] is not there.get(id) and id in live}


def pushed(call: Any, tangents: Sequence[Any], inputs: Sequence[Any], key: str) -> Any:
    """The tangent of a result; None if it is zero."""
    tape, ids = inputs[0].tape, [x.id for x in call.inputs]
    given = dict(zip(ids, inputs, strict=True))
    sides: dict[str, tuple[BodyTape, Any]] = {}
    for name, body in call.bodies.items():
        replay = _Replay(call, body, tape, given.__getitem__)
        moving = zip(body.closed, tangents[call.ahead :], strict=True)
        with replay.inner.recording():
            moved = {id: replay.inner.held(t if is_var(t) else tape.const(t)) for id, t in moving if t is not None}
            push(list(body.nodes), moved, 0, len(body.tape) - 1, replay.value)
        sides[name] = replay.inner, moved.get(call.value_in(body, key))
    if all(t is None for _, t in sides.values()):
        return None
    spec = call.spec(key)
    return _called(
        call,
        tape,
        given.__getitem__,
        {n: (inner, [inner.const(zeros(spec)) if t is None else t]) for n, (inner, t) in sides.items()},
    )[0]


def _called(call: Any, tape: Any, lift: Lift, sides: Mapping[str, tuple[BodyTape, Sequence[AnyVar]]]) -> list[AnyVar]:
    """What a call of the same kind gives, on the same truth."""
    bodies, around = sharing(sides)
    made: BodyCall = type(call)(tape, bodies, [*[lift(x.id) for x in call.inputs[: call.ahead]], *around])
    count = len(next(iter(bodies.values())).ys)
    return list(made.vars([f"y {j}" for j in range(count)]).values())


def zeros(spec: Spec) -> AnyTensor:
    """What flows to what is not used."""
    return AnyTensor.number(0.0, spec.dtype, spec.shape)

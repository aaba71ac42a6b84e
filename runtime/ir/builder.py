"""Putting a graph together: values, nodes, constants, and the optimizer behind the gradients."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np

from ...base.arrays import Array, Arrays
from ...tape import AnyVar
from ...tape.graph.node import Node
from ...tape.loops.body import Body
from ...tape.loops.call import BodyCall
from ...tape.transforms.symbolic_tape import SymbolicTape
from ...tape.values.dtypes import FLOATS
from ...tape.values.spec import Spec
from ..optim import Rule
from ..optim.averages import KERNEL as AVERAGE, ema_key
from ..optim.laws.known import HYPER
from ..optim.laws.ops_law import OpsLaw
from ..optim.laws.pointwise import CONSTANTS
from ..optim.rates.schedules import Schedule
from ..optim.state_ops import FLOAT64, STATE_OPS
from ..step.recipe import Recipe
from .attributes import canonical
from .graph import IRGraph, IRNode, Role, Value


def body_graph(call: BodyCall, body: Body, results: Iterable[str]) -> IRGraph:
    """The graph of a body of a call: its inputs and outputs are named as the call's are."""
    kinds = {"carry": body.carry, "xs": body.xs, "around": body.closed}
    names = {id: f"{kind} {i}" for kind, ids in kinds.items() for i, id in enumerate(ids)}
    builder = Builder(len(body.tape))

    def leaf(node: Node) -> None:
        if node.id in names:
            spec = node.value.spec
            builder.declare(Value(node.id, spec, Role.INPUT, names[node.id]))

    outputs = {f"carry {i}": id for i, id in enumerate(body.after)}
    outputs |= {key: call.value_in(body, key) for key in results}
    builder.nodes_of(islice(body.tape, max(body.size, *[id + 1 for id in outputs.values()])), leaf)
    return builder.graph("body", outputs)


class Builder:
    """A graph in the making; new values get ids from ``free`` on."""

    def __init__(self, free: int) -> None:
        self.values: dict[int, Value] = {}
        self.nodes: list[IRNode] = []
        self.constants: dict[int, Array] = {}
        self.updates: dict[int, int] = {}
        self.consumed: dict[int, int] = {}
        """Parameter → its gradient as the rule consumed it."""
        self.clip: int | None = None
        """The norm of all gradients and what they were multiplied by, where they are clipped by norm."""
        self._free = free

    def declare(self, value: Value) -> int:
        """Enter a value and return its id."""
        self.values[value.id] = value
        self._free = max(self._free, value.id + 1)
        return value.id

    def constant(self, id: int, array: Array) -> str:
        """Keep the data of a constant; returns its content."""
        self.constants[id] = array
        if (array.size and not any(array.strides)) or array.size == 1:
            return repr(array.flat[0].item())
        return "sha256:" + sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:32]

    def held(self, id: int, array: Array) -> str:
        """Keep the array that a constant is, whatever will be in it; returns its content, which says so."""
        self.constants[id] = array
        return f"array %{id}"

    def graph(self, name: str, outputs: Mapping[str, int]) -> IRGraph:
        """The graph as it is now."""
        return IRGraph(name, self.values, tuple(self.nodes), outputs, self.updates)

    def require_finite(self, ids: Iterable[int]) -> None:
        """Check that floats are neither infinite nor NaN: the step ends there if they are."""
        for id in ids:
            if self.values[id].dtype in FLOATS:
                self._node("finite", [id])

    def assign(self, new_state: Mapping[int, int]) -> None:
        """Give entries of the model's state their new values: all are taken before the first is overwritten."""
        taken = {before: self._node("snapshot", [after])[0] for before, after in new_state.items()}
        for before, after in taken.items():
            self._in_place("assign", [before, after])

    def update(
        self,
        params: Mapping[str, int],
        gradients: Mapping[int, int],
        recipe: Recipe,
        state: Arrays,
        known: Mapping[str, int],
    ) -> None:
        """What follows the gradients: clipping, counters, the rule for each parameter; ``known`` state has an id."""
        missing = {name: Spec(a.shape, a.dtype) for name, a in state.items() if name not in known}
        held = {**known, **{name: self._new(spec, Role.STATE, name) for name, spec in missing.items()}}
        self.consumed = self._clipped(gradients, recipe)
        groups = recipe.groups(params)
        for group in groups.groups:
            own = {key: held[name] for key, name in group.keys.items()}
            now, hyper = self._advanced(own, group.rule)
            for name in group.names:
                if params[name] in gradients:
                    self._update_one(group.rule, name, params[name], own, now, hyper)
        if groups.averages is not None:
            decay = self._number("ema", groups.averages.hyper)
            for name in groups.averages.names:
                after = self.updates.get(params[name], params[name])
                self._in_place(AVERAGE.name, [held[ema_key(name)], after, decay])

    def _update_one(
        self, rule: Rule, name: str, param: int, held: Mapping[str, int], now: Mapping[str, int], hyper: int
    ) -> None:
        """The update of one parameter by its rule; ``held`` is the state before the step, ``now`` its scalars in it."""
        law = rule.law
        operands = [param, *[held[f"{buffer}/{name}"] for buffer in law.buffers], self.consumed[param]]
        if isinstance(law, OpsLaw):
            self._update_by_ops(law, operands, [hyper, self._number("hyper", rule.hyper), now["step"]])
            return
        inputs = [*operands, *[now[scalar] for scalar in law.scalars], hyper]
        self._in_place(law.kernel.name, inputs, {"attributes": law.attributes} if law.attributes else {})

    def _update_by_ops(self, law: OpsLaw, operands: Sequence[int], scalars: Sequence[int]) -> None:
        """The nodes of an update that is written in ops; all results are taken before the first is overwritten."""
        update = law.recorded(self.values[operands[0]].spec)
        ids = dict(zip(update.inputs, (*operands, *scalars), strict=True))
        for node in update.tape:
            if node.id not in ids:
                ids[node.id] = self._copied(node, ids)
        taken = [self._node("snapshot", [ids[result]])[0] for result in update.results]
        for before, after in zip(operands, taken, strict=False):
            self._in_place("assign", [before, after])

    def learning_rate(self, schedule: Schedule, base: int, step: int) -> int:
        """As `ScheduleNodes.learning_rate`."""
        inputs = [base, self._number("schedule", schedule.numbers, in_place=schedule.is_set), step]
        return self._node(schedule.kernel.name, inputs, {"attributes": tuple(schedule.ints.values.tolist())})[0]

    def by_ops(self, function: Callable[..., AnyVar], inputs: Sequence[int]) -> int:
        """As `ScheduleNodes.by_ops`."""
        tape = SymbolicTape()
        given: list[AnyVar] = [tape.symbol(self.values[id].spec, "") for id in inputs]
        result: AnyVar = function(*given)
        ids = dict(zip([var.id for var in given], inputs, strict=True))
        for node in tape:
            if node.id not in ids:
                ids[node.id] = self._copied(node, ids)
        return ids[result.id]

    def told(self, numbers: Array) -> int:
        """As `ScheduleNodes.told`."""
        id = self._free
        return self.declare(Value(id, Spec(numbers.shape, numbers.dtype), Role.CONST, "hyper", self.held(id, numbers)))

    def _copied(self, node: Node, ids: Mapping[int, int]) -> int:
        """A node of another tape as one of this graph, with a new id."""
        spec, id = node.value.spec, self._free
        if node.op is None:
            content = self.constant(id, node.value.array)
            return self.declare(Value(id, spec, Role.CONST, node.name or "", content))
        self.declare(Value(id, spec, Role.STATIC, node.name or ""))
        self.add(node, id, ids)
        return id

    def add(self, node: Node, id: int, ids: Mapping[int, int] | None = None) -> None:
        """The node that makes the value ``id`` by the op of a tape's node; ``ids`` are those here of its parents."""
        assert node.op is not None, "a leaf is a value without a node"
        given = [None if source is None else source.id for source in node.sources]
        inputs = tuple(given if ids is None else [None if x is None else ids[x] for x in given])
        attrs = {key: canonical(value) for key, value in node.attrs.items()} if node.attrs else {}
        self.nodes.append(IRNode(len(self.nodes), node.op.name, inputs, (id,), attrs))

    def call(self, call: BodyCall, results: Mapping[str, int]) -> None:
        """The node that makes results of a call of bodies, by their keys."""
        inputs = tuple([x.id for x in call.inputs])
        bodies = {name: str(body_graph(call, body, results)) for name, body in call.bodies.items()}
        attrs = {**bodies, **call.attrs, "results": tuple(results)}
        self.nodes.append(IRNode(len(self.nodes), call.name, inputs, tuple(results.values()), attrs))

    def nodes_of(self, nodes: Iterable[Node], leaf: Callable[[Node], None]) -> None:
        """Enter the nodes of a tape; ``leaf`` enters those that no op makes."""
        listed = list(nodes)
        for node in listed:
            if node.op is None:
                leaf(node)
                continue
            self.declare(Value(node.id, node.value.spec, Role.STATIC, node.name or ""))
            call: BodyCall | None = node.loop
            if call is None:
                self.add(node, node.id)
            elif call.first == node.id:
                self.call(call, {key: id for key, id in call.results.items() if id < len(listed)})

    def _clipped(self, gradients: Mapping[int, int], recipe: Recipe) -> dict[int, int]:
        clipped = dict(gradients)
        if recipe.clip_value is not None:
            limit = self._number("clip_value", [recipe.clip_value])
            clipped = {param: self._node("clamp_to", [g, limit])[0] for param, g in clipped.items()}
        if recipe.clip_norm is not None:
            norms = [self._node("tensor_norm", [g])[0] for g in clipped.values()]
            self.clip = self._node("norm_scale", [*norms, self._number("clip_norm", [recipe.clip_norm])])[0]
            clipped = {param: self._node("scale_by", [g, self.clip])[0] for param, g in clipped.items()}
        return clipped

    def _advanced(self, held: Mapping[str, int], rule: Rule) -> tuple[dict[str, int], int]:
        """The scalars of the state for this step, and the vector of hyperparameters."""
        now = dict(held)
        now["step"] = self._in_place("step_inc", [held["step"]])[0]
        now["hyper"] = self._number("hyper", rule.hyper[:HYPER])
        if CONSTANTS in getattr(rule.law, "scalars", ()):
            now[CONSTANTS] = self._number("hyper", rule.hyper)
        if rule.schedule is not None:
            now["hyper"] = rule.schedule.graph(self, now["hyper"], now["step"])
        for kernel, (target, *sources) in rule.counters:
            now[target] = self._in_place(kernel.name, [held[target], *(now[name] for name in sources)])[0]
        return now, now["hyper"]

    def _new(self, spec: Spec, role: Role, name: str = "") -> int:
        return self.declare(Value(self._free, spec, role, name))

    def _number(self, name: str, numbers: Sequence[float] | Array, *, in_place: bool = False) -> int:
        id = self._free
        data = np.asarray(numbers) if in_place else np.array(numbers, FLOAT64)
        content = self.held(id, data) if in_place else self.constant(id, data)
        return self.declare(Value(id, Spec(data.shape, data.dtype), Role.CONST, name, content))

    def _in_place(self, op: str, inputs: Sequence[int], attrs: Mapping[str, Any] | None = None) -> list[int]:
        """A primitive that overwrites its first inputs, which are parameters or state."""
        outputs = self._node(op, inputs, attrs)
        self.updates.update(zip(inputs, outputs, strict=False))
        return outputs

    def _node(self, op: str, inputs: Sequence[int], attrs: Mapping[str, Any] | None = None) -> list[int]:
        specs = STATE_OPS[op].infer([self.values[i].spec for i in inputs])
        outputs = [self._new(spec, Role.STATIC) for spec in specs]
        self.nodes.append(IRNode(len(self.nodes), op, tuple(inputs), tuple(outputs), attrs or {}))
        return outputs

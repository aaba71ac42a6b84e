"""Lowering covers the graph: every node is computed once, and no op does what no node says.

The check follows the data. Every op must write the values of nodes, or something that a later op reads; what it
reads must be what those nodes read. A node whose value no op writes must be a view, a product with the constant
1, or lie between what an op reads and what it writes: then it was fused into that op, and is named so.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .....tape.numerics.basic.copy import copy
from .....tape.ops.elementwise.kernels import basic as kernels
from .....tape.ops.shape.kernels import append, join_columns
from .....tape.record.lowering import KernelStep, Slot, ViewStep, order
from .....tape.record.op import OPS
from ....ir.graph import IRNode, Role
from ....lower.program import LoweredOp
from ....optim.state_ops import STATE_OPS
from ..extents import Extent, extent, read, written
from ..report import CheckError
from ..subject import Part, Subject


def check_lowering(subject: Subject) -> str:
    """Every node of every plan is lowered once, and nothing is left over."""
    return "; ".join(check_coverage(part) for part in subject.parts)


def check_coverage(part: Part) -> str:
    """The same for one plan; what was fused. Raises CheckError naming the node or op."""
    coverage = _Coverage(part)
    for i in range(len(part.program.ops)):
        coverage.follow(i)
    return coverage.summary()


@dataclass
class _Coverage:
    """Which op computes which node."""

    part: Part
    fused: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """Node → the ops in which its value is made and used without being written."""

    def __post_init__(self) -> None:
        self.program, self.graph = self.part.program, self.part.program.graph
        self.producer = {id: node for node in self.graph.nodes for id in node.outputs}
        self.writes = [written(self.program, op) for op in self.program.ops]
        self._ops = {node.id: node.op for node in self.graph.nodes}
        self._writing: dict[int, list[int]] = {}
        for i, extents in enumerate(self.writes):
            for root in {where.root for where in extents}:
                self._writing.setdefault(root, []).append(i)

    def _op_of(self, op: LoweredOp) -> str:
        """The op of the node that a lowered op comes from."""
        return self._ops.get(op.source, "")

    def _makers(self, where: Extent) -> list[int]:
        """The ops that write into an extent."""
        return [i for i in self._writing.get(where.root, ()) if any(where.meets(w) for w in self.writes[i])]

    @cached_property
    def carriers(self) -> dict[int, int]:
        """Value → the value whose elements it shares: of views, and of products with 1 that were left out."""
        sources = {op.source for op in self.program.ops if op.kernel is not copy}  # others may read its copies, too
        found: dict[int, int] = {}
        for node in self.graph.nodes:
            carrier = self._carrier(node)
            if node.id in self.program.views or (carrier is not None and node.id not in sources):
                if carrier is None or not (self._is_view(node) or self._has_unit_factor(node, carrier)):
                    name = self.part.node_name(node)
                    raise CheckError(f"{name}: became a view of another value, but it changes elements")
                found[node.outputs[0]] = carrier
        return found

    def _carrier(self, node: IRNode) -> int | None:
        """The input in whose storage, or in a copy of which, the result lies, for ops that write nothing in place."""
        if node.op in STATE_OPS:
            return None
        out = node.outputs[0]
        root = self.program.root(out)
        able = list(node.reads)
        if root != out:
            able += [id for read in node.reads if not self._is_one(read) for id in self._pieces(read)]
        return next((id for id in able if self.program.root(id) == root or self._is_copy(out, id)), None)

    def _pieces(self, id: int) -> Iterator[int]:
        """What was joined to make a value, or what that is a view of."""
        node = self.producer.get(id)
        if node is None or node.op not in OPS:
            return
        if self._joins(node) or isinstance(self._lowered(node)[1].step, ViewStep):
            for each in node.reads:
                yield each
                yield from self._pieces(each)

    def _lowered(self, node: IRNode) -> tuple[list[Slot], Slot]:
        """The steps of a node's op on values like those that it reads, and the last of them."""
        specs = [None if id is None else self.graph.values[id].spec for id in node.inputs]
        return OPS[node.op].lowered(specs, node.attrs)

    def _joins(self, node: IRNode) -> bool:
        """Whether a node puts arrays side by side."""
        step = self._lowered(node)[1].step if node.op in OPS else None
        return isinstance(step, KernelStep) and step.kernel is append

    def _is_copy(self, out: int, id: int) -> bool:
        """Whether a value lies where one op alone has put a copy, which stands for no node, of another value."""
        ops = [self.program.ops[i] for i in self._makers(extent(self.program, out))]
        if [op.kernel for op in ops] != [copy] or ops[0].outputs[0] in self.graph.values:
            return False
        return self.program.places[ops[0].inputs[0]] == self.program.places[id]

    def _is_view(self, node: IRNode) -> bool:
        return node.op in OPS and all(isinstance(slot.step, ViewStep) for slot in order(self._lowered(node)[1]))

    def _has_unit_factor(self, node: IRNode, carrier: int) -> bool:
        step = self._lowered(node)[1].step
        product = isinstance(step, KernelStep) and step.kernel is kernels.mul
        return product and all(carrier in (id, *self._pieces(id)) or self._is_one(id) for id in node.reads)

    def _is_one(self, id: int) -> bool:
        """Whether a value repeats the constant 1."""
        while id in self.producer and self._is_view(self.producer[id]):
            id = self.producer[id].reads[0]
        value = self.graph.values[id]
        return value.role is Role.CONST and value.content == "1.0"

    def _is_unit_factor(self, node: IRNode, id: int) -> bool:
        """Whether a value repeats the constant 1, and all that a node does with it is to multiply by it."""
        slots, result = self._lowered(node) if node.op in OPS else ([], None)
        if result is None or not self._is_one(id):
            return False
        ones = {slot for slot, read in zip(slots, node.reads, strict=True) if self._carried(read) == id}
        for slot in order(result):
            step = slot.step
            if step is None or not ones.intersection(step.inputs):
                continue
            if isinstance(step, ViewStep) or (isinstance(step, KernelStep) and step.kernel is copy):
                ones.add(slot)
            elif not (isinstance(step, KernelStep) and step.kernel is kernels.mul):
                return False
        return True

    @cached_property
    def writers(self) -> dict[int, int]:
        """Value of a node → the op that writes it."""
        found: dict[int, int] = {}
        for id, node in self.producer.items():
            if id in self.carriers:
                continue
            ops = self._makers(extent(self.program, id))
            if len(ops) > 1:
                raise CheckError(f"{self.part.node_name(node)}: %{id} is written by both op {ops[0]} and op {ops[1]}")
            if ops:
                found[id] = ops[0]
        return found

    @cached_property
    def targets(self) -> dict[int, list[IRNode]]:
        """Op → the nodes whose values it writes."""
        found: dict[int, list[IRNode]] = {}
        for id, i in self.writers.items():
            found.setdefault(i, []).append(self.producer[id])
        return found

    @cached_property
    def checks(self) -> dict[int, list[IRNode]]:
        """Op → the nodes without outputs that it stands for: the same kernel on all that they read."""
        found: dict[int, list[IRNode]] = {}
        for node in self.graph.nodes:
            if node.outputs:
                continue
            able = [i for i in range(len(self.program.ops)) if self._stands_for(i, node)]
            if not able:
                raise CheckError(f"{self.part.node_name(node)}: no op of the program does it")
            own = [i for i in able if self.program.ops[i].source == node.id]
            found.setdefault((own or able)[0], []).append(node)
        return found

    def _stands_for(self, i: int, node: IRNode) -> bool:
        """Whether an op is the node's own, not the copy that it reads, and is given what the node reads."""
        op = self.program.ops[i]
        wanted = [extent(self.program, id) for id in node.reads if self.graph.values[id].spec.size]
        if op.outputs or self._op_of(op) != node.op:
            return False
        given = self._given(i)
        return all(any(w.meets(g) for g in given) for w in wanted)

    # ------------------------------------------------------------------ one op

    def follow(self, i: int) -> None:
        """Hold what an op reads and writes against the nodes that it computes."""
        name = self.part.op_name(i)
        if self.program.ops[i].source not in self._ops:
            raise CheckError(f"{name}: comes from no node of the graph")
        nodes = self.targets.get(i, []) + self.checks.get(i, [])
        if not nodes:
            self._require_read(i)
            return
        given = [where for j in self._together(i) for where in self._given(j)]
        needed = self._needed(i, nodes, given)
        for id, node in needed.items():
            # a piece of what no op has joined is read where it lies
            joined = self._joins(node) and node.outputs[0] not in self.writers
            enough = (id, *self._pieces(node.outputs[0])) if joined else (id,)
            if not any(self._is_given(each, given) for each in enough) and not self._is_unit_factor(node, id):
                raise CheckError(f"{name}: computes {self.part.node_name(node)}, but does not read its input %{id}")
        self._require_needed(i, needed)

    def _together(self, i: int) -> list[int]:
        """The ops that make values of the same nodes, as a loop and the sums behind it do."""
        nodes = {node.id for node in self.targets.get(i, ())}
        return [i, *[j for j, made in self.targets.items() if j != i and nodes & {node.id for node in made}]]

    def _require_read(self, i: int) -> None:
        """An op that computes no node must make something for a later op, or for the caller."""
        later = [r for op in self.program.ops[i + 1 :] for r in read(self.program, op)]
        later += [extent(self.program, id) for id in self.graph.outputs.values()]
        if not any(w.meets(r) for w in self.writes[i] for r in later):
            raise CheckError(f"{self.part.op_name(i)}: is left over: it computes no node, and no op reads its result")

    def _needed(self, i: int, nodes: Sequence[IRNode], given: Sequence[Extent]) -> dict[int, IRNode]:
        """The values that an op must be given, each with the node that reads it; notes what is fused on the way."""
        found: dict[int, IRNode] = {}
        todo, seen = list(nodes), {node.id for node in nodes}
        joins = self.program.ops[i].kernel is join_columns
        while todo:
            node = todo.pop()
            for id in map(self._carried, node.reads):
                maker = self.producer.get(id)
                if maker is not None and id not in self.writers:
                    if maker.id not in seen:
                        seen.add(maker.id)
                        todo.append(maker)
                        if not (joins and maker.id in self.fused):
                            self.fused.setdefault(maker.id, []).append(i)
                elif joins and maker and maker.op in ("place", "add") and not self._is_given(id, given):
                    todo.append(maker)  # blocks whose sum is kept, too, are joined with others from where they were
                elif self.writers.get(id) != i or (maker and maker.op in STATE_OPS):
                    found[id] = node
        return found

    def _carried(self, id: int) -> int:
        """The value whose elements a value shares, through all views."""
        while id in self.carriers:
            id = self.carriers[id]
        return id

    def _is_given(self, id: int, given: Sequence[Extent]) -> bool:
        return any(extent(self.program, id).meets(g) for g in given)

    def _given(self, i: int) -> list[Extent]:
        """What an op is given: what it reads, seen through values that stand for no node; what it updates."""
        op = self.program.ops[i]
        found = list(self.writes[i]) if self._op_of(op) in STATE_OPS else []
        for where in read(self.program, op):
            found += self._origin(where, i)
        return found

    def _origin(self, where: Extent, before: int) -> list[Extent]:
        makers = [j for j in self._makers(where) if j < before]
        if not makers and self.program.is_static(where.root) and where.root not in self.program.groups:
            raise CheckError(f"{self.part.op_name(before)}: reads %{where.root} before any op has written it")
        found = [where]
        for j in makers:
            if any(where.meets(w) and v not in self.graph.values for v, w in self._outputs(j)):
                for given in read(self.program, self.program.ops[j]):
                    found += self._origin(given, j)
        return found

    def _outputs(self, i: int) -> Iterable[tuple[int, Extent]]:
        return zip(self.program.ops[i].outputs, self.writes[i], strict=True)

    def _require_needed(self, i: int, needed: Iterable[int]) -> None:
        """Nothing may be read that no node of the op reads."""
        wanted = [extent(self.program, id) for id in needed] + [w for j in self._together(i) for w in self.writes[j]]
        for value, where in zip(self.program.ops[i].inputs, read(self.program, self.program.ops[i]), strict=True):
            if not any(w.meets(origin) for origin in self._origin(where, i) for w in wanted):
                raise CheckError(f"{self.part.op_name(i)}: reads %{value}, which none of its nodes reads")

    # ------------------------------------------------------------------ all ops

    def summary(self) -> str:
        """How the nodes are covered. Raises CheckError for one that is not, or more than once."""
        covered = {self.producer[id].id for id in (*self.writers, *self.carriers)} | set(self.fused)
        covered |= {node.id for nodes in self.checks.values() for node in nodes}
        for node in self.graph.nodes:
            if node.id not in covered and self._is_needed(node):
                raise CheckError(f"{self.part.node_name(node)}: no op computes it")
            if len(ops := self.fused.get(node.id, [])) > 1:
                raise CheckError(f"{self.part.node_name(node)}: is computed in both op {ops[0]} and op {ops[1]}")
        return f"{self.graph.name}: {len(self.graph.nodes)} nodes in {len(self.program.ops)} ops{self._fused()}"

    def _fused(self) -> str:
        """Which ops hold more than they write: ``; op 0 holds linear``."""
        held: dict[int, list[str]] = {}
        for node in self.graph.nodes:
            if node.id in self.fused:
                held.setdefault(self.fused[node.id][0], []).append(node.op)
        return "".join([f", op {i} holds {' '.join(names)}" for i, names in held.items()])

    def _is_read(self, reader: IRNode, id: int) -> bool:
        """Whether a node takes part and reads a value there: no product that was left out, nor what no one reads."""
        if not reader.outputs or reader.outputs[0] in self.writers or reader.id in self.fused:
            return True
        carrier = self.carriers.get(reader.outputs[0], id)
        return carrier == id and self._is_needed(reader)

    def _is_needed(self, node: IRNode) -> bool:
        """Whether anything reads a node's value but products with 1 that were left out, directly or through views."""
        for reader in self.graph.nodes:
            for id in set(node.outputs) & set(reader.reads):
                if self._is_read(reader, id):
                    return True
        return bool(set(node.outputs) & {*self.graph.outputs.values(), *self.graph.updates.values()})

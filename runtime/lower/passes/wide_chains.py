"""Chains on a GPU: elementwise ops that share what they read become one, a thread for each element.

Unlike a CPU's chains they may be short, stand apart, read an array in any order of its elements in the place of a copy,
and write their results side by side into one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from ....tape.numerics.basic import arithmetic
from ....tape.numerics.basic.copy import copy, joined_axes
from ....tape.numerics.engine.chain import MAX_OPERANDS, Chain, Link, Spread, chain
from ....tape.numerics.engine.launch import Words
from ....tape.numerics.sizes import Sizes
from ....tape.ops.shape import kernels
from ..program import LoweredOp, Program
from .unit_factors import drop_unread

BYTE = np.dtype(np.bool_)

NEAR, MOST = 24, 64
"""Ops from its last one in which a chain grows, and its most links: what is made early takes memory for long."""


class WideChain(Chain):
    """A chain whose links say where their operands lie."""

    def scratch(self, strides: tuple[Sizes, ...], parts: int) -> int:
        """None: what lies between links is a thread's own."""
        return 0


@dataclass(eq=False)
class JoinedOps:
    """Ops over equally many elements that become one, where the first stands; `made` are the roots of what they make.

    ``joined`` puts some of that side by side.
    """

    size: int
    first: int
    ops: list[LoweredOp] = field(default_factory=list[LoweredOp])
    last: int = 0
    made: set[int] = field(default_factory=set[int])
    read: set[int] = field(default_factory=set[int])
    joined: list[LoweredOp] = field(default_factory=list[LoweredOp])

    def take(self, i: int, op: LoweredOp, program: Program, read: set[int]) -> None:
        """Another op."""
        (self.joined if op.kernel is kernels.join_columns else self.ops).append(op)
        self.last = i
        self.made.update(program.root(v) for v in op.outputs)
        self.read.update(read)


def join_elementwise(program: Program) -> Program:
    """Elementwise ops joined on a GPU, with the copies that they read."""
    return _Joining(program).run()


class _Joining:
    """One program's chains in the making."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.kept = program.kept
        self.copies = {program.root(op.outputs[0]): op for op in program.ops if op.kernel is copy}
        self.copies = {root: op for root, op in self.copies.items() if root not in self.kept}
        self.ready: dict[int, int] = {}
        self.changed: dict[int, int] = {}
        self.groups: list[JoinedOps] = []
        self.places: list[LoweredOp | JoinedOps] = []

    def run(self) -> Program:
        for i, op in enumerate(self.program.ops):
            group = self._group(i, op)
            if group is None:
                self.places.append(op)
            for v in op.outputs:
                root = self.program.root(v)
                self.ready[root] = i if group is None else group.first
                if not self.program.is_static(root):
                    self.changed[root] = i
        readers = self._readers()
        ops = [self._made(each, readers) if isinstance(each, JoinedOps) else each for each in self.places]
        return drop_unread(self.program.with_ops(ops))

    # ------------------------------------------------------------------ who goes with whom

    def _group(self, i: int, op: LoweredOp) -> JoinedOps | None:
        """The group that takes an op, perhaps a new one."""
        joins = op.kernel is kernels.join_columns
        size = self._joined_size(op) if joins else self._size(op)
        if not size:
            return None
        read = {self.program.root(self._source(v)) for v in op.inputs}
        for group in reversed(self.groups):
            if i - group.last > NEAR:
                break
            if group.size == size and self._fits(group, op, read, i):
                group.take(i, op, self.program, read)
                return group
        if joins:
            return None
        group = JoinedOps(size, i)
        group.take(i, op, self.program, read)
        self.groups.append(group)
        self.places.append(group)
        return group

    def _size(self, op: LoweredOp) -> int:
        """The elements of an op that may be part of a chain, else 0."""
        if op.kernel is copy or not op.pointwise or not isinstance(op.words, Words) or len(op.table) > MAX_OPERANDS:
            return 0
        if op.refusal or not all(self.program.root(v) == v and self.program.is_static(v) for v in op.outputs):
            return 0
        return prod(self.program.layout(op.outputs[0]).shape)

    def _joined_size(self, op: LoweredOp) -> int:
        """The elements of each array that is put side by side with others of its size; 0 if sizes differ."""
        assert isinstance(op.words, Words)
        rows, _, _, *runs = op.words.values.tolist()
        return rows * runs[0] if len(set(runs)) == 1 else 0

    def _fits(self, group: JoinedOps, op: LoweredOp, read: set[int], i: int) -> bool:
        """Whether an op may be part of a group, and has to do with it."""
        roots = [self.program.root(v) for v in op.inputs]
        near = group.last == i - 1 or bool(group.made & read or group.read & read)
        if not near or len(group.ops) + len(group.joined) == MOST:
            return False
        if op.kernel is kernels.join_columns:
            return all(self._is_whole(v, group.size) and r in group.made for v, r in zip(op.inputs, roots, strict=True))
        for value in op.inputs:
            source = self._source(value)
            root = self.program.root(source)
            if root in group.made:
                if source != value or not self._is_whole(value, group.size) or self._is_joined(group, root):
                    return False
            elif self.ready.get(root, -1) >= group.first or self.changed.get(root, -1) >= group.first:
                return False
        return True

    def _is_joined(self, group: JoinedOps, root: int) -> bool:
        return any(self.program.root(op.outputs[0]) == root for op in group.joined)

    def _is_whole(self, value: int, size: int) -> bool:
        layout, whole = self.program.layout(value), self.program.layout(self.program.root(value))
        return layout.is_dense and not layout.offset and layout.nbytes == whole.nbytes and prod(layout.shape) == size

    def _source(self, value: int) -> int:
        """What a link reads in the place of a value: of a copy whose rows it can follow, what was copied."""
        copied = self.copies.get(self.program.root(value))
        if copied is None or not self._is_followed(copied):
            return value
        return copied.inputs[0] if self._is_whole(value, prod(self.program.layout(value).shape)) else value

    def _is_followed(self, copied: LoweredOp) -> bool:
        """Whether the copy has what it reads as it stood then, with neighbours beside each other."""
        layout, root = self.program.layout(copied.inputs[0]), self.program.root(copied.inputs[0])
        step = joined_axes(layout.shape, layout.strides)[-1:]
        return root not in self.program.graph.updates and all(s in (0, layout.dtype.itemsize) for _, s in step)

    # ------------------------------------------------------------------ what they become

    def _readers(self) -> dict[int, set[int]]:
        """Of every root the positions of what reads it."""
        found: dict[int, set[int]] = {}
        for k, each in enumerate(self.places):
            ops = [*each.ops, *each.joined] if isinstance(each, JoinedOps) else [each]
            for op in ops:
                for v in op.inputs:
                    value = self._source(v) if isinstance(each, JoinedOps) else v
                    found.setdefault(self.program.root(value), set()).add(
                        id(each) if isinstance(each, JoinedOps) else -k
                    )
        return found

    def _made(self, group: JoinedOps, readers: Mapping[int, set[int]]) -> LoweredOp:
        if len(group.ops) == 1 and not group.joined and all(self._source(v) == v for v in group.ops[0].inputs):
            return group.ops[0]
        program = self.program
        made = [v for op in group.ops for v in op.outputs]
        local = [v for v in made if v not in self.kept and readers.get(v, set()) <= {id(group)}]
        outputs = [*[v for v in made if v not in local], *[op.outputs[0] for op in group.joined]]
        inputs = dict.fromkeys(self._source(v) for op in group.ops for v in op.inputs if program.root(v) not in made)
        table = [*outputs, *inputs]
        places = {v: i for i, v in enumerate(table)} | {v: -1 - i for i, v in enumerate(local)}
        links = [self._link(op, places) for op in group.ops]
        links += [link for op in group.joined for link in self._joining(op, places, -1 - len(local))]
        words = WideChain(group.size, len(table), len(local) + 1, links)
        ops = [*group.ops, *group.joined]
        work, source = sum(op.work for op in ops), ops[-1].source
        return LoweredOp(chain, BYTE, tuple(outputs), tuple(inputs), words, work, source)

    def _link(self, op: LoweredOp, places: Mapping[int, int]) -> Link:
        assert isinstance(op.words, Words)
        values = [*op.outputs, *map(self._source, op.inputs)]
        operands = tuple([places[v] if v in places else places[self.program.root(v)] for v in values])
        sizes = tuple([self.program.layout(v).dtype.itemsize for v in values])
        spreads = tuple([self._spread(v, s) for v, s in zip(op.table, values, strict=True)])
        return Link(op.kernel, op.element, op.words, operands, sizes, spreads if any(spreads) else ())

    def _spread(self, value: int, source: int) -> Spread | None:
        """How the elements of a source lie that a link reads in the place of a copy."""
        if value == source:
            return None
        layout = self.program.layout(source)
        return 0, tuple(joined_axes(layout.shape, layout.strides)) or ((1, 0),)

    def _joining(self, op: LoweredOp, places: Mapping[int, int], zero: int) -> Iterator[Link]:
        """Links that put arrays side by side, each plus 0, as ``join_columns`` does."""
        assert isinstance(op.words, Words)
        rows, pitch, _, *runs = op.words.values.tolist()
        size, words = op.element.itemsize, Words(rows * runs[0])
        for k, value in enumerate(op.inputs):
            spread = k * runs[0] * size, ((rows, pitch * size), (runs[0], size))
            own = places[value] if value in places else places[self.program.root(value)]
            yield Link(
                arithmetic.add, op.element, words, (places[op.outputs[0]], own, zero), (size,) * 3, (spread, None, None)
            )

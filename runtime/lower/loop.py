"""Loops in plans: the plan of a body, and where its values lie in the arrays of the loop.

The calls of the body are there once. A row of an array that is cut or stacked lies where its array has it, so nothing
is copied but the parts of the state that a step cannot write where it reads them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from ...tape.numerics.basic.copy import copy, copy_words
from ...tape.numerics.engine import machine
from ...tape.numerics.engine.kernel import Kernel
from ...tape.numerics.engine.launch import Words
from ...tape.numerics.prepared.interruption import CALL_WORK, LOOK_WORK
from ...tape.numerics.prepared.loop import LoopCopy, LoopPointer, LoopWords, loop
from ...tape.numerics.sizes import Sizes
from ..ir.bodies import places_of
from ..ir.graph import IRNode
from ..step.memory import aligned
from .array_layout import ArrayLayout
from .lower import COPY_ELEMENTS
from .plan import BindingPlan, Split, operand_strides, plan
from .program import LoweredOp, Program, RepeatedCalls, StoragePlace


@dataclass(frozen=True, eq=False)
class LoopPlan(RepeatedCalls):
    """A body that is run for rows ``places``, in their order; ``results`` are those of the node, by their keys.

    Of a ``while_loop`` the first part of the state says whether there is another turn; other ops than loops have one.
    """

    op: str
    body: BindingPlan
    places: range
    results: tuple[str, ...]
    outputs: Mapping[str, int]
    inputs: tuple[tuple[str, int], ...]
    """What each input of the node is to the body, and its id there, -1 for none."""
    planned: Callable[[Program], BindingPlan]
    """The plan of a body."""

    kernel = loop

    @property
    def versions(self) -> list[tuple[Kernel, np.dtype[Any]]]:
        """The kernels of the body, each with its element type."""
        return [version for op in self.body.program.ops for version in op.versions]

    @property
    def work(self) -> int:
        """How long all steps take, or one where no one knows how many there are."""
        return self._steps * sum(op.work for op in self.body.program.ops)

    @property
    def flops(self) -> int:
        """Arithmetic operations of the same."""
        return self._steps * sum(op.flops for op in self.body.program.ops)

    @property
    def _steps(self) -> int:
        return 1 if self.open else len(self.places)

    @property
    def open(self) -> bool:
        """Whether its state says when it ends."""
        return self.op == "while_loop"

    @property
    def shared(self) -> bool:
        """Whether any call has more than one part."""
        return self.body.shared

    def with_kernels(self, kernels: Mapping[Kernel, Kernel]) -> "LoopPlan":
        """The same loop with other kernels in the place of some."""
        return replace(self, body=replace(self.body, program=self.body.program.with_kernels(kernels)))

    def without(self, op: LoweredOp, part: int) -> "LoopPlan":
        """The same loop without a part of the state, and the op of the body that makes it."""
        program, gone = self.body.program, f"carry {part}"
        names = {name: _numbered(name, part) for name in self.outputs if name != gone}
        outputs = {new: self.outputs[old] for old, new in names.items()}
        ops, graph = [each for each in program.ops if each is not op], replace(program.graph, outputs=outputs)
        return replace(
            self,
            body=self.planned(replace(program, ops=tuple(ops), graph=graph)),
            results=tuple([names[name] for name in self.results if name != gone]),
            outputs=outputs,
            inputs=tuple([given for given in self.inputs if given != ("carry", self.carried[part])]),
        )

    def reading(self, program: Program, around: Sequence[int]) -> "LoopPlan":
        """The same loop with another program for its body, which reads more values from around, of these ids."""
        given = (*self.inputs, *[("around", id) for id in around])
        return replace(self, body=self.planned(program), inputs=given)

    def scratch(self, strides: tuple[Sizes, ...], parts: int) -> int:
        """Bytes of the body's arena, and of parts of the state that are no result."""
        return self._states[-1] + 1

    def words(self, strides: tuple[Sizes, ...]) -> LoopWords:
        """The words of the loop; compiles the kernels of the body or loads them from disk."""
        program, pointed, starts, inner = self.body.program, list[LoopPointer](), list[int](), list[Words]()
        for i, op in enumerate(program.ops):
            starts.append(len(pointed))
            pointed += self.pointers(i, op)
        pointers, rows = np.zeros(len(pointed), np.int64), np.empty((len(program.ops), machine.ROW), np.int64)
        for i, op in enumerate(program.ops):
            words = op.words if isinstance(op.words, Words) else op.words.words(operand_strides(program, op))
            table = int(pointers.ctypes.data) + 8 * starts[i]
            rows[i] = op.kernel.address(op.element), table, words.address, self.body.parts[i]
            inner.append(words)
        every = max(1, LOOK_WORK // (CALL_WORK + sum(CALL_WORK + op.work for op in program.ops)))
        return LoopWords(self.places, rows, pointers, pointed, self.before, list(self.after), inner, self.truth, every)

    # ------------------------------------------------------------------ where values lie

    def pointers(self, i: int, op: LoweredOp) -> list[LoopPointer]:
        """Where the operands of the ``i``-th op of the body lie, and the memory that it needs."""
        scratch = [self.body.scratch[i].offset] if i in self.body.scratch else []
        return [*map(self.home, op.table), *(LoopPointer(self._arena, offset) for offset in scratch)]

    @property
    def _arena(self) -> int:
        """The place of the memory to work in among the arrays of the loop."""
        return len(self.results) + len(self.inputs)

    @cached_property
    def carried(self) -> list[int]:
        """The parts of the state before a step, by their ids in the body."""
        return [id for kind, id in self.inputs if kind == "carry"]

    @cached_property
    def _states(self) -> list[int]:
        """Where in the memory to work in each part of the state begins, and where the last ends."""
        sizes = [aligned(self.body.program.layout(id).nbytes) for id in self.carried]
        return list(accumulate(sizes, initial=aligned(self.body.arena_bytes)))

    def _state(self, i: int) -> LoopPointer:
        """Where a part of the state lies: in the result, if it is one."""
        key = f"carry {i}"
        return (
            LoopPointer(self.results.index(key), 0)
            if key in self.results
            else LoopPointer(self._arena, self._states[i])
        )

    @cached_property
    def _homes(self) -> dict[int, LoopPointer]:
        """Where roots lie that are no values of the body alone."""
        program, homes = self.body.program, dict[int, LoopPointer]()
        for place, (kind, id) in enumerate(self.inputs, len(self.results)):
            homes[id] = LoopPointer(place, 0, program.layout(id).nbytes if kind == "xs" else 0)
        homes |= {id: self._state(i) for i, id in enumerate(self.carried)}
        for place, key in enumerate(self.results):
            if not key.startswith("carry "):
                homes[program.root(self.outputs[key])] = LoopPointer(place, 0, program.layout(self.outputs[key]).nbytes)
        homes |= {self._after_step(i): self._state(i) for i in range(len(self.carried)) if self._in_place(i)}
        return homes

    def home(self, value: int) -> LoopPointer:
        """Where a value of the body lies, among the results, the inputs and the memory to work in."""
        place = self.body.program.places[value]
        if place.root in self._homes:
            home = self._homes[place.root]
            return home._replace(offset=home.offset + place.layout.offset)
        return LoopPointer(self._arena, self.body.slots[place.root].offset + place.layout.offset)

    # ------------------------------------------------------------------ the state

    def _after_step(self, i: int) -> int:
        """The root of a part of the state after a step."""
        return self.body.program.root(self.outputs[f"carry {i}"])

    def _in_place(self, i: int) -> bool:
        """Whether a part of the state is written where it was: no one reads it after that, or while it is written."""
        program, before, after = self.body.program, self.carried[i], self._after_step(i)
        reads = [k for k, op in enumerate(program.ops) if any(program.root(v) == before for v in op.inputs)]
        written = min(k for k, op in enumerate(program.ops) if any(program.root(v) == after for v in op.outputs))
        if max(reads, default=-1) != written:
            return max(reads, default=-1) < written
        op = program.ops[written]
        positions = [k for k, v in enumerate(op.inputs) if program.root(v) == before]
        return len(positions) == 1 and positions[0] in op.aliases and op.inputs[positions[0]] == before

    @property
    def truth(self) -> LoopPointer | None:
        """What lets another turn begin; None where all do."""
        return self._state(0) if self.open else None

    @property
    def before(self) -> list[LoopCopy]:
        """The first state, to where the steps have it."""
        return [
            LoopCopy(self._state(i), LoopPointer(len(self.results) + i, 0), self.body.program.layout(id).nbytes)
            for i, id in enumerate(self.carried)
        ]

    @property
    def after(self) -> Iterator[LoopCopy]:
        """The state after a step, to where the next one reads it."""
        for i, id in enumerate(self.carried):
            if not self._in_place(i):
                value = self.outputs[f"carry {i}"]
                yield LoopCopy(self._state(i), self.home(value), self.body.program.layout(id).nbytes)


def loop_plan(
    node: IRNode, program: Program, inputs: list[tuple[str, int]], *, in_place: bool, split: Split
) -> LoopPlan:
    """The plan of one of a node's bodies, which was lowered; ``inputs`` are those of the body."""
    program, planned = with_own_outputs(program), partial(plan, in_place=in_place, split=split)
    given = (*[("around", -1)] * (len(node.inputs) - len(inputs)), *inputs)
    results, outputs = node.attrs["results"], program.graph.outputs
    return LoopPlan(node.op, planned(program), places_of(node), results, outputs, given, planned)


def _numbered(name: str, gone: int) -> str:
    """The name of an output where a part of the state is gone."""
    kind, _, number = name.partition(" ")
    return f"carry {int(number) - 1}" if kind == "carry" and int(number) > gone else name


def with_own_outputs(program: Program) -> Program:
    """The program with every output in storage of its own: what is given to the body, or stored already, is copied.

    Of what is given that is done first, so that a step may overwrite it.
    """
    taken, outputs, places = set[int](), dict[str, int](), dict(program.places)
    first, last = list[LoweredOp](), list[LoweredOp]()
    free = max(places, default=-1) + 1
    for name, value in program.graph.outputs.items():
        place = places[value]
        whole = place.layout.is_dense and place.layout.nbytes == program.layout(place.root).nbytes
        if whole and program.is_static(place.root) and place.root not in taken:
            taken.add(place.root)
            outputs[name] = value
            continue
        made = ArrayLayout.dense(place.layout.shape, place.layout.dtype)
        places[free], places[free + 1] = StoragePlace(free, made), place
        (last if _is_made(program, place.root) else first).append(_copied(free, free + 1, place.layout))
        outputs[name], free = free, free + 2
    graph = replace(program.graph, outputs=outputs)
    return replace(program, graph=graph, places=places, ops=(*first, *program.ops, *last))


def _is_made(program: Program, root: int) -> bool:
    """Whether ops make what lies under a root, alone or in a block with others."""
    members = program.groups.get(root, (root,))
    return all(program.is_static(member) for member in members)


def _copied(out: int, value: int, layout: ArrayLayout) -> LoweredOp:
    words = copy_words(layout.shape, layout.strides, layout.dtype.itemsize)
    return LoweredOp(copy, COPY_ELEMENTS[layout.dtype.itemsize], (out,), (value,), words, prod(layout.shape), 0)

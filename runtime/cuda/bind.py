"""Binding to a GPU: a plan over device memory becomes one CUDA graph, with the face of a plan on the CPU."""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ...base.arrays import Array
from ...tape.numerics.cuda import nvrtc
from ...tape.numerics.cuda.code import Wanted, ptx_of
from ...tape.numerics.cuda.entry import NAME, NO_FAULT, SHIFT
from ...tape.numerics.cuda.written import Launch
from ...tape.numerics.engine.chain import Chain
from ...tape.numerics.engine.kernel import Kernel
from ...tape.numerics.engine.launch import Words
from ...tape.ops.cuda_forms import FORMS
from ..ir.graph import Role
from ..lower.bind import BoundPlan, Fault, Kept, bytes_of
from ..lower.plan import BindingPlan, operand_strides
from ..lower.program import LoweredOp, Program
from ..step.memory import line_aligned, owned_block
from . import measure
from .arguments import CallArguments, Told
from .driver import Clear, Copy, KernelNode
from .mirror import Mirror
from .order import MARK, READ, WRITE, Touch, in_turn, waits
from .transfers import Inputs, RunAnswer

FEWEST, MOST = 32, 256
"""Threads of a block of a translated kernel: few where there would be fewer blocks than processors."""

PROCESSORS = 128
"""Blocks below which blocks become smaller."""


class CudaBound(BoundPlan):
    """A plan over the GPU's memory. A run copies the inputs there, and the loss and the first fault back.

    Everything else stays there until it is asked for: `value`, `fetch`.
    """

    def __init__(self, plan: BindingPlan, outside: Mapping[int, Array], mirror: Mirror) -> None:
        self.plan, self._mirror, self._gpu = plan, mirror, mirror.gpu
        self._outside = outside
        self._arena = self._gpu.allocate(plan.arena_bytes)
        self._inputs = Inputs(mirror, {v.id: outside[v.id] for v in plan.program.graph.with_role(Role.INPUT)})
        self._kept = list[Any]([self._arena])
        self._where = self._addresses()
        self._host: dict[int, Array] = {}
        self._loss = self._loss_root()
        self._answer = RunAnswer(self._gpu, self._loss_place())
        if self._loss is not None:
            self._host[self._loss] = self._answer.loss
        self._trains = bool(plan.program.graph.updates)
        self._pieces = [(inputs, self._gpu.graph(nodes)) for inputs, nodes in self._cut()]

    # ------------------------------------------------------------------ running

    def run(self, taken: Mapping[int, Array] | None = None) -> None:
        """Run the graphs on what lies in the input buffers, or was taken from elsewhere.

        Raises Fault, at the first op that failed.
        """
        taken = taken or {}
        self._gpu.use()
        self._mirror.before_run()
        for inputs, graph in self._pieces:
            for root in inputs:
                self._inputs.send(root, taken)
            self._gpu.start(graph)
        self._inputs.keep(taken)
        self._gpu.wait()
        if self._trains:
            self._mirror.after_run()
        self._require_no_fault()

    def _require_no_fault(self) -> None:
        if (found := self._answer.report()) != NO_FAULT:
            raise Fault(self.plan.program.ops[found >> SHIFT], found & ((1 << SHIFT) - 1))

    def run_fed(self, feeds: int, batch: tuple[Any, ...]) -> bool:
        """Run on a batch, and copy it into its buffers; False, and nothing done, if it does not fit. Raises Fault."""
        if (taken := self._inputs.take(batch)) is None:
            return False
        self.run(taken)
        return True

    def run_many(self, sources: Array, kept: Kept, n: int) -> tuple[int, Fault | None]:
        """So many steps, on the batches of ``sources``; how many ran whole, and the fault that ended them."""
        for i in range(n):
            for source in sources.tolist():
                _gather(source, i)
            try:
                self.run()
            except Fault as fault:
                return i, fault
            for value, copies in kept:
                copies[i] = value
        return n, None

    # ------------------------------------------------------------------ values

    def value(self, id: int) -> Array:
        """The array of a value on the host, with what is in it now, while the value is alive."""
        place = self.plan.program.places[id]
        if place.root in self._outside:
            self._mirror.show()
            return place.layout.array(bytes_of(self._outside[place.root]))
        if place.root not in self._host:
            self._host[place.root] = line_aligned(self.plan.program.layout(place.root).nbytes)
        self._download(place.root)
        return place.layout.array(self._host[place.root])

    def fetch(self, *arrays: Array) -> None:
        """Copy what the last run left in arrays that `value` gave, or in all of them, to the host."""
        wanted = {int(owned_block(array).ctypes.data) for array in arrays}
        self._gpu.use()
        for root, block in self._host.items():
            if not arrays or int(owned_block(block).ctypes.data) in wanted:
                self._download(root)

    def _download(self, root: int) -> None:
        if root != self._loss:  # which every run brings back
            self._gpu.download(self._host[root], self._where[root])

    def fill(self, byte: int) -> None:
        """Overwrite all that ops make and that does not outlive a run."""
        self._gpu.use()
        self._gpu.upload(self._arena.address, np.full(self.plan.arena_bytes, byte, np.uint8))

    # ------------------------------------------------------------------ ops by themselves

    def one_by_one(self) -> Iterator[int]:
        """Run every op by itself, in order, on what lies in the input buffers; in between `value` has what they left.

        Raises Fault, at the first op that failed.
        """
        self._gpu.use()
        self._mirror.before_run()
        for root in self._inputs.direct:
            self._inputs.send(root, {})
        self._in_turn([node for node, _ in self._inputs.copies()])
        for i, op in enumerate(self.plan.program.ops):
            self._in_turn([node for node, _ in (*self._launches(i, op), *self._answer.copies())])
            if self._trains:
                self._mirror.after_run()
            self._require_no_fault()
            yield i

    def _in_turn(self, nodes: Sequence[KernelNode | Copy | Clear]) -> None:
        self._gpu.launch(self._gpu.graph(in_turn(nodes)))

    def seconds(self, repeats: int) -> list[float]:
        """The median time of each op, run so many times by itself. What they change stays changed."""
        self._gpu.use()
        return [self._seconds(i, op, repeats) for i, op in enumerate(self.plan.program.ops)]

    def _seconds(self, i: int, op: LoweredOp, repeats: int) -> float:
        try:
            return measure.seconds_of(self._gpu, [node for node, _ in self._launches(i, op)], repeats)
        finally:
            self._answer.reset()  # what an op by itself reports is nobody's fault

    def limits(self) -> tuple[float, float]:
        """Arithmetic operations and bytes per second that are reached there."""
        return measure.limits(self._gpu)

    # ------------------------------------------------------------------ binding

    def _loss_root(self) -> int | None:
        """The root of the loss, if it lies in the arena."""
        program = self.plan.program
        root = program.root(program.graph.outputs["loss"]) if "loss" in program.graph.outputs else None
        return root if root in self.plan.slots else None

    def _loss_place(self) -> tuple[int, int] | None:
        return None if self._loss is None else (self._where[self._loss], self.plan.program.layout(self._loss).nbytes)

    def _addresses(self) -> dict[int, int]:
        """Where every root lies in the GPU's memory."""
        program, found = self.plan.program, dict[int, int]()
        for whole, members in program.groups.items():
            first = next(iter(members))
            if first in self._outside:
                found[whole] = self._mirror.address(self._outside[first])
            else:
                found[whole] = self._uploaded(np.zeros(program.layout(whole).nbytes, np.uint8))
        for root, array in self._outside.items():
            found[root] = self._inputs.address(root) or self._mirror.address(array)
        return found | {root: self._arena.address + block.offset for root, block in self.plan.slots.items()}

    def _cut(self) -> Iterator[tuple[list[int], list[KernelNode | Copy | Clear]]]:
        """Inputs in, every op, the answer out: in pieces, before each of which direct inputs are sent."""
        ops = self.plan.program.ops
        first = {root: self._first_reader(root) for root in self._inputs.direct}
        for begin, end in pairwise([*sorted({0, *first.values()}), len(ops)]):
            made: list[tuple[KernelNode | Copy | Clear, list[Touch]]] = [*(self._inputs.copies() if not begin else [])]
            made += [launch for i in range(begin, end) for launch in self._launches(i, ops[i])]
            made += self._answer.copies() if end == len(ops) else []
            after = waits([touches for _, touches in made])
            nodes = [node._replace(after=own) for (node, _), own in zip(made, after, strict=True)]
            yield [root for root, i in first.items() if i == begin], nodes

    def _first_reader(self, root: int) -> int:
        """The first op that reads a root; 0 if none does."""
        program = self.plan.program
        return next((i for i, op in enumerate(program.ops) if root in map(program.root, op.inputs)), 0)

    def _launches(self, i: int, op: LoweredOp) -> Iterator[tuple[KernelNode | Clear, list[Touch]]]:
        """What one op is on the GPU: the launches of its written form, one after the other, or its translation."""
        program, chain = self.plan.program, op.words if isinstance(op.words, Chain) else None
        table = [self._where[program.root(v)] + program.layout(v).offset for v in op.table]
        words, form = self._words(op), FORMS.get(op.kernel.name)
        memory = self._uploaded(np.array([*table, *words], np.int64))
        if op.kernel.cleared:
            yield self._cleared(op)
        if form is None:
            parts = max(1, chain.size if chain else _units(program, op))
            yield self._translated(i, op, Wanted.of(*_stand_in(op), chain), (memory, memory + 8 * len(table)), parts)
            return
        form = form.on(self._gpu.arch)
        nbytes = form.scratch(op.element, tuple(words))
        scratch = self._allocated(nbytes)
        places = [*table, memory + 8 * len(table), scratch]
        for launch in form.launches(op.element, tuple(words)):
            yield self._written(i, op, launch, places, Touch(scratch, scratch + max(1, nbytes), WRITE))

    def _cleared(self, op: LoweredOp) -> tuple[Clear, list[Touch]]:
        """Zeros in the output of an op, which is dense."""
        touch = self._bytes(op.outputs[0], WRITE)
        return Clear(touch.begin, self.plan.program.layout(op.outputs[0]).nbytes, ()), [touch]

    def _written(
        self, i: int, op: LoweredOp, launch: Launch, places: Sequence[int], scratch: Touch
    ) -> tuple[KernelNode, list[Touch]]:
        code = nvrtc.compiled(launch.source, launch.defines, self._gpu.arch)
        call, report = CallArguments.of(launch, places), Told(self._answer.device, i)
        function = self._gpu.function(code, launch.entry, launch.shared)
        node = KernelNode(function, launch.grid, launch.block, launch.shared, [call, report], ())
        return node, [*self._touches(op, guarded=self._guarded(op)), scratch]

    def _translated(
        self, i: int, op: LoweredOp, wanted: Wanted, places: tuple[int, int], parts: int
    ) -> tuple[KernelNode, list[Touch]]:
        (code,) = ptx_of([wanted])
        threads = min(MOST, max(FEWEST, -(-parts // PROCESSORS // FEWEST) * FEWEST))
        guarded = self._guarded(op)
        numbers = [ctypes.c_uint64(n) for n in (*places, parts, i, self._answer.device, int(guarded))]
        function = self._gpu.function(code.encode(), NAME)
        node = KernelNode(function, (-(-parts // threads), 1, 1), (threads, 1, 1), 0, numbers, ())
        return node, self._touches(op, guarded=guarded)

    def _words(self, op: LoweredOp) -> list[int]:
        """The words of a call; those of a chain are the addresses of its links' words."""
        if isinstance(op.words, Chain):
            return [self._uploaded(link.words.values) for link in op.words.links]
        words = op.words if isinstance(op.words, Words) else op.words.words(operand_strides(self.plan.program, op))
        return [int(word) for word in words.values]

    def _uploaded(self, values: Array) -> int:
        address = self._allocated(values.nbytes)
        self._gpu.upload(address, values)
        return address

    def _allocated(self, nbytes: int) -> int:
        memory = self._gpu.allocate(nbytes)
        self._kept.append(memory)
        return memory.address

    def _guarded(self, op: LoweredOp) -> bool:
        """Whether an op changes what outlives the step."""
        program = self.plan.program
        return any(
            not program.is_static(program.root(v)) and program.root(v) not in self.plan.slots for v in op.outputs
        )

    def _touches(self, op: LoweredOp, *, guarded: bool) -> list[Touch]:
        """The bytes that an op reads and writes; the report is one of the things that may fail and be looked at."""
        found = [self._bytes(v, WRITE) for v in op.outputs]
        found += [self._bytes(v, READ) for v in op.inputs]
        report = self._answer.device
        if op.refusal or not op.outputs:  # it may fail
            found.append(Touch(report, report + 8, MARK))
        if guarded:
            found.append(Touch(report, report + 8, READ))
        return found

    def _bytes(self, value: int, way: int) -> Touch:
        """Where a value lies; of one that is not dense all of its root."""
        program = self.plan.program
        root, layout = program.root(value), program.layout(value)
        begin = self._where[root]
        if not layout.is_dense:
            return Touch(begin, begin + max(1, program.layout(root).nbytes), way)
        return Touch(begin + layout.offset, begin + layout.offset + max(1, layout.nbytes), way)


def _gather(source: Sequence[int], step: int) -> None:
    """What `machine.run_steps` does before a step, for one input."""
    target, base, stride, places, advance, rows, nbytes = source
    for i in range(rows):
        place = ctypes.c_int64.from_address(places + 8 * (step * advance + i)).value
        ctypes.memmove(target + i * nbytes, base + stride * place, nbytes)


def _stand_in(op: LoweredOp) -> tuple[Kernel, np.dtype[Any]]:
    """What is translated of a kernel: of one that needs memory to work in, the variant that needs none."""
    return op.kernel.variants.get("reference", op.kernel), op.element


def _wanted(plan: BindingPlan) -> list[Wanted]:
    """All that a plan's ops may need translated."""
    return [
        Wanted.of(*_stand_in(op), op.words if isinstance(op.words, Chain) else None)
        for op in plan.program.ops
        if op.kernel.name not in FORMS
    ]


def _units(program: Program, op: LoweredOp) -> int:
    """At least as many as the items that the shares of a call split: the elements of its largest output."""
    return max((prod(program.layout(v).shape) for v in op.outputs or op.inputs), default=1)


def bind_to_gpu(plan: BindingPlan, outside: Mapping[int, Array], mirror: Mirror) -> CudaBound:
    """A plan on a mirror's GPU. ``outside`` has the dense array of every root that is not static."""
    ptx_of(_wanted(plan))  # together, in several processes
    return CudaBound(plan, outside, mirror)

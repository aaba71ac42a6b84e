"""Binding: a plan over real memory becomes the table that the machine runs."""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...base.arrays import Array
from ...base.errors import DgrrError
from ...tape.errors import DomainError
from ...tape.numerics.engine import machine
from ...tape.numerics.engine.launch import Words
from ...tape.numerics.engine.side_by_side import Task, compile_side_by_side
from ...tape.numerics.engine.threads import THREADS
from ...tape.numerics.prepared.interruption import INTERRUPTED
from ..ir.graph import Role
from ..step.memory import line_aligned
from .faults import BodyFault, body_fault
from .limits import limits
from .plan import BindingPlan, operand_strides
from .program import LoweredOp, RepeatedCalls

ARRAYS = id(np.ndarray)
"""What the machine knows arrays by."""


Kept = Sequence[tuple[Array, Array]]
"""Values that every one of several steps leaves, each with an array that has room for those of all."""


class Fault(DgrrError):  # noqa: N818
    """An op that reported a status other than 0."""

    def __init__(self, op: LoweredOp, status: int, inside: BodyFault | None = None) -> None:
        """``inside`` says of a call of bodies what failed in it."""
        super().__init__(f"{op.kernel.name} of node {op.source} reported the status {status}")
        self.op, self.status, self.inside = op, status, inside


class BoundPlan(Protocol):
    """A plan over real memory, on whatever machine it runs."""

    plan: BindingPlan

    def run(self) -> None:
        """Run every op once. Raises Fault, at the op that failed; nothing behind it changed what is kept."""
        ...

    def run_fed(self, feeds: int, batch: tuple[Any, ...]) -> bool:
        """Copy a batch into its buffers and run; False, and nothing done, if it does not fit. Raises Fault."""
        ...

    def run_many(self, sources: Array, kept: Kept, n: int) -> tuple[int, Fault | None]:
        """So many steps, on the batches of ``sources``; how many ran whole, and the fault that ended them."""
        ...

    def one_by_one(self) -> Iterator[int]:
        """Run every op by itself, in order, on what lies in the input buffers; in between `value` has what they left.

        Raises Fault, at the first op that failed.
        """
        ...

    def value(self, id: int) -> Array:
        """The array of a value; what is in it, while the value is alive."""
        ...

    def fetch(self, *arrays: Array) -> None:
        """Have what the last run left in arrays that `value` gave, or in all of them, where they lie."""
        ...

    def fill(self, byte: int) -> None:
        """Overwrite all that ops make and that does not outlive a run."""
        ...

    def seconds(self, repeats: int) -> list[float]:
        """The median time of each op, run so many times by itself. What they change stays changed."""
        ...

    def limits(self) -> tuple[float, float]:
        """Arithmetic operations and bytes per second that are reached there."""
        ...


@dataclass(eq=False)
class Bound:
    """A plan over its arena and the arrays of parameters, state, inputs and constants.

    All addresses are fixed here; a run allocates nothing.
    """

    plan: BindingPlan
    memory: dict[int, Array]
    """The bytes of every root."""
    rows: Array
    fault: Array
    shared: bool
    """Whether any call has more than one part."""
    words: Sequence[Words]
    """Those of every op."""
    kept: list[Any] = field(default_factory=list[Any])
    """What the table points to."""
    _run_fed: Callable[[int, int, int, int, int, int, tuple[Any, ...]], int] | None = field(default=None, init=False)

    def value(self, id: int) -> Array:
        """The array of a value; what is in it, while the value is alive."""
        place = self.plan.program.places[id]
        return place.layout.array(self.memory[place.root])

    def run(self, first: int = 0, stop: int | None = None) -> None:
        """Run every op once, or those from one up to another. Raises Fault, at the op that failed and ended it."""
        begin, count = self.rows_address + 8 * machine.ROW * first, (self.count if stop is None else stop) - first
        if self.shared:
            with THREADS.lent() as control:
                failed = machine.run(begin, count, control, self.fault)
        else:
            failed = machine.run(begin, count, 0, self.fault)
        if failed and self._interrupted():
            self.run(0, stop)  # what was there at the first of these ops may be overwritten
        elif failed:
            self.fault[1] += first
            raise self.last_fault()

    def run_fed(self, feeds: int, batch: tuple[Any, ...]) -> bool:
        """Copy a batch into its buffers and run; False, and nothing done, if it does not fit. Raises Fault."""
        if self._run_fed is None:
            self._run_fed = machine.run_fed(len(batch))  # a batch has as many arrays as the plan has inputs
        if self.shared:
            with THREADS.lent() as control:
                failed = self._run_fed(self.rows_address, self.count, control, self.fault_address, feeds, ARRAYS, batch)
        else:
            failed = self._run_fed(self.rows_address, self.count, 0, self.fault_address, feeds, ARRAYS, batch)
        if not failed:
            return True
        if failed > 0 and self._interrupted():
            self.run()
        elif failed > 0:
            raise self.last_fault()
        return failed > 0

    def run_many(self, sources: Array, kept: Kept, n: int) -> tuple[int, Fault | None]:
        """So many steps, on the batches of ``sources``; how many ran whole, and the fault that ended them.

        A fault of the rows of others ends them too, without a word: it is theirs, and the step before it ran whole.
        """
        out, done = np.array([(a.ctypes.data, copies.ctypes.data, a.nbytes) for a, copies in kept], np.int64), 0
        while done < n:
            with THREADS.lent(wanted=self.shared) as control:
                ran = machine.run_steps(self.rows_address, self.count, control, self.fault, sources, out, n - done)
            done += ran
            if done == n or not self._interrupted():
                break
            sources, out = machine.behind(sources, out, ran)
        if done == n or self.fault[1] < len(self.plan.program.ops):
            return done, self.last_fault() if done < n else None
        for array, copies in kept:
            copies[done] = array
        return done + 1, None

    def one_by_one(self) -> Iterator[int]:
        """Run every op by itself, in order. Raises Fault, at the first op that failed."""
        for i in range(self.count):
            self.run(i, i + 1)
            yield i

    def _interrupted(self) -> bool:
        """Whether Ctrl-C ended the run, which begins again then, unless that raises: nothing that stays has changed."""
        if self.fault[0] != INTERRUPTED:
            return False
        signal.raise_signal(signal.SIGINT)
        return True

    def with_rows(self, behind: Sequence[Array]) -> "Bound":
        """The same with rows of others that are run behind each step."""
        rows = np.concatenate([self.rows, *behind])
        shared = self.shared or bool((rows[:, machine.PARTS] > 1).any())
        return replace(self, rows=rows, shared=shared, kept=[*self.kept, *behind])

    def fetch(self, *arrays: Array) -> None:
        """They lie there already."""

    def fill(self, byte: int) -> None:
        """Overwrite all that ops make and that does not outlive a run."""
        for root in self.plan.slots:
            self.memory[root][:] = byte

    def seconds(self, repeats: int) -> list[float]:
        """The median time of each op, run so many times by itself. What they change stays changed."""
        times = [list[float]() for _ in self.plan.program.ops]
        with THREADS.lent() as control:
            for _ in range(repeats):
                empty = self._timed(0, 0, control)
                for i, found in enumerate(times):
                    found.append(max(self._timed(i, 1, control) - empty, 1e-9))
        return [median(found) for found in times]

    def _timed(self, row: int, count: int, control: int) -> float:
        address = self.rows_address + 8 * machine.ROW * row
        began = perf_counter()
        if machine.run(address, count, control, self.fault):
            self._interrupted()
        return perf_counter() - began

    def limits(self) -> tuple[float, float]:
        """Arithmetic operations and bytes per second that are reached in cache."""
        return limits()

    def last_fault(self) -> Fault:
        """What the op reported that ended a run early."""
        status, i = int(self.fault[0]), int(self.fault[1])
        op = self.plan.program.ops[i]
        return Fault(op, status, body_fault(op.words, self.words[i]) if isinstance(op.words, RepeatedCalls) else None)

    def __post_init__(self) -> None:
        self.rows_address, self.count = int(self.rows.ctypes.data), len(self.rows)
        self.fault_address = int(self.fault.ctypes.data)


def bind(plan: BindingPlan, outside: Mapping[int, Array]) -> Bound:
    """Allocate the arena and write the table.

    ``outside`` has the dense array of every root that is not static, and of those static ones that shall not lie in the
    arena.
    """
    compile_side_by_side(_missing(plan))
    arena = line_aligned(plan.arena_bytes)
    memory = {root: bytes_of(array) for root, array in outside.items()}
    memory |= {whole: _group(plan, whole, outside) for whole in plan.program.groups}
    memory |= {root: arena[b.offset : b.offset + b.nbytes] for root, b in plan.slots.items() if root not in outside}
    program = plan.program
    ops, places = program.ops, program.places
    start = int(arena.ctypes.data)
    base = {root: start + block.offset for root, block in plan.slots.items()}
    base |= {root: int(memory[root].ctypes.data) for root in memory.keys() - (plan.slots.keys() - outside.keys())}
    tables, rows = list[int](), list[tuple[int, ...]]()
    starts, every = list[int](), list[Words]()
    for i, op in enumerate(ops):
        starts.append(len(tables))
        tables += [base[place.root] + place.layout.offset for v in op.table if (place := places[v])]
        if i in plan.scratch:
            tables.append(start + plan.scratch[i].offset)
    pointers = np.array(tables, np.int64)
    first = int(pointers.ctypes.data)
    for i, op in enumerate(ops):
        words = op.words if isinstance(op.words, Words) else op.words.words(operand_strides(program, op))
        every.append(words)
        rows.append((op.kernel.address(op.element), first + 8 * starts[i], words.address, plan.parts[i]))
    kept = [arena, *outside.values(), pointers]
    return Bound(
        plan, memory, np.array(rows, np.int64).reshape(-1, machine.ROW), np.zeros(2, np.int64), plan.shared, every, kept
    )


def _missing(plan: BindingPlan) -> list[Task]:
    """What of the machine code that a plan runs is not compiled yet."""
    ops = plan.program.ops
    versions = {(op.kernel, op.element): None for op in ops}
    versions |= dict.fromkeys(version for op in ops if not isinstance(op.words, Words) for version in op.versions)
    tasks = [Task(f"{k.name} {dtype}", partial(k.compiled, dtype)) for k, dtype in versions if not k.is_ready(dtype)]
    inputs = len(list(plan.program.graph.with_role(Role.INPUT)))
    if not machine.run_fed_is_ready(inputs):
        tasks.append(Task("the loop over calls", partial(machine.run_fed, inputs)))
    return tasks


def _group(plan: BindingPlan, whole: int, outside: Mapping[int, Array]) -> Array:
    """The bytes of a block of several values: around those that lie outside, else fresh zeros."""
    members, nbytes = plan.program.groups[whole], plan.program.layout(whole).nbytes
    first = next(iter(members))
    if first not in outside:
        memory = line_aligned(nbytes)
        memory[:] = 0
        return memory
    start = int(outside[first].ctypes.data)
    for member, offset in members.items():
        if outside[member].ctypes.data != start + offset:
            raise DomainError(f"step: expected {member} side by side with what it is updated with, got another address")
    return as_strided(bytes_of(outside[first]), (nbytes,), (1,))


def bytes_of(array: Array) -> Array:
    """The bytes of a dense array."""
    return array.reshape(-1).view(np.uint8)

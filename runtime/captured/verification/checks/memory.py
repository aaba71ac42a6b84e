"""The memory of plans: nothing overlaps that is alive together, every pointer lies inside its own, addresses stay."""

import gc
import tracemalloc

import numpy as np

from .....base.arrays import Array
from ....step.memory import ALIGNMENT
from ..bits import owner_of
from ..extents import extent
from ..report import CheckError
from ..subject import Part, Subject

LOOPS, WARM = 50, 3
"""Steps over which memory is watched, and those before them."""

NOISE = 512
"""Bytes that Python itself may take and give back while it calls compiled code: numbers, no array."""

AGAIN = 2
"""How often steps that seem to allocate are watched again: other threads do, now and then; steps do each time."""

FREE, SCRATCH = -1, -2
"""Owners of lines of the arena that hold no value."""


def check_arena(subject: Subject) -> str:
    """Blocks do not overlap, begin at cache lines and hold their values; no value is overwritten before it is read."""
    sizes: list[str] = []
    for part in subject.parts:
        check_blocks(part)
        check_lifetimes(part)
        if subject.is_here:
            check_places(part)
        plan = part.plan
        sizes.append(f"{part.graph.name}: {plan.arena_bytes:,} bytes for {plan.static_bytes:,}")
    return "; ".join(sizes)


def check_blocks(part: Part) -> None:
    """Blocks are apart, aligned and inside the arena."""
    plan, name = part.plan, part.graph.name
    for a, b in plan.overlaps():
        raise CheckError(f"{name}: blocks of %{a.owner} and %{b.owner} share bytes while both are alive: {a}, {b}")
    for block in plan.blocks:
        if block.offset % ALIGNMENT or block.offset + block.nbytes > plan.arena_bytes or block.offset < 0:
            raise CheckError(f"{name}: {block} is not {ALIGNMENT}-byte aligned in an arena of {plan.arena_bytes} bytes")


def check_places(part: Part) -> None:
    """The memory of every block begins at a cache line, and every operand lies inside that of its root."""
    for root in part.plan.slots:
        if part.bound.memory[root].ctypes.data % ALIGNMENT:
            raise CheckError(f"{part.graph.name}: the memory of %{root} does not begin at a cache line")
    for i, op in enumerate(part.program.ops):
        for value in op.table:
            where = extent(part.program, value)
            if where.begin < 0 or where.end > part.bound.memory[where.root].nbytes:
                raise CheckError(f"{part.op_name(i)}: %{value} reaches out of the memory of %{where.root}")


def check_lifetimes(part: Part) -> None:
    """Replay the program over a map of who owns each line of the arena, without regard to planned lifetimes."""
    plan, program = part.plan, part.program
    owner = np.full(plan.arena_bytes // ALIGNMENT, FREE)
    for i, op in enumerate(program.ops):
        for value in op.inputs:
            _require_owner(part, owner, program.root(value), f"{part.op_name(i)} reads %{value}")
        read = {program.root(value) for position, value in enumerate(op.inputs) if position not in op.aliases}
        _write(part, owner, i, {program.root(value) for value in op.outputs}, read)
    for root in program.kept:
        _require_owner(part, owner, root, f"{part.graph.name}: the caller reads %{root}")


def _write(part: Part, owner: Array, i: int, outputs: set[int], read: set[int]) -> None:
    """Hand the lines of the outputs, and of scratch, over; what the op still reads must not lie there."""
    plan = part.plan
    for root in outputs:
        lines = _lines(part, root)
        lost = set(owner[lines].tolist()) & read - {root}
        if lost:
            raise CheckError(f"{part.op_name(i)}: writes %{root} over %{lost.pop()}, which it reads")
        owner[lines] = root
    if i in plan.scratch:
        block = plan.scratch[i]
        lines = slice(block.offset // ALIGNMENT, (block.offset + block.nbytes) // ALIGNMENT)
        lost = set(owner[lines].tolist()) & (read | outputs)
        if lost:
            raise CheckError(f"{part.op_name(i)}: its scratch memory lies over %{lost.pop()}, which it uses")
        owner[lines] = SCRATCH


def _lines(part: Part, root: int) -> slice:
    """The lines of the arena that hold a root; none, if it lies elsewhere."""
    if root not in part.plan.slots:
        return slice(0, 0)
    first = part.plan.slots[root].offset // ALIGNMENT
    return slice(first, first - (-part.program.layout(root).nbytes // ALIGNMENT))


def _require_owner(part: Part, owner: Array, root: int, what: str) -> None:
    wrong = [id for id in owner[_lines(part, root)].tolist() if id != root]
    if wrong:
        there = {FREE: "nothing", SCRATCH: "scratch of an op"}.get(wrong[0], f"%{wrong[0]}")
        raise CheckError(f"{what}, but where %{root} should lie is {there}")


def check_identity(subject: Subject) -> str:
    """The arrays of parameters, state, batch and results are the same objects at the same addresses after a run."""
    before = _identities(subject)
    several = min(2, subject.replays)
    for run in (
        lambda: subject.step(subject.batch),
        lambda: subject.step.replay(several),
        lambda: subject.step.steps([subject.batch] * several),
    ):
        run()
        subject.rewind()
    after = _identities(subject)
    for name, known in before.items():
        if after.get(name) != known:
            raise CheckError(f"{name}: another array, or at another address, than before the step ran")
    return f"{len(before)} arrays at their addresses"


def _identities(subject: Subject) -> dict[str, tuple[int, int]]:
    """Every array by what it is: object and address."""
    step, bound = subject.step, subject.plans.step.on_cpu
    named = {f"parameter {n!r}": a for n, a in step.params.items()} | {f"state {n!r}": a for n, a in step.state.items()}
    named |= {f"input {i}": array for i, array in enumerate(subject.plans.inputs)}
    named |= {f"consumed gradient {name!r}": array for name, array in step.consumed.items()}
    named |= {"loss": step.loss, "table": bound.rows}
    named |= {f"the memory of %{root}": owner_of(bound.memory[root]) for root in bound.plan.slots}
    return {name: (id(array), int(array.ctypes.data)) for name, array in named.items()}


def check_allocation(subject: Subject) -> str:
    """A step allocates nothing once it is warm: Python's allocations and numpy's, as tracemalloc sees them."""
    was_tracing, collecting = tracemalloc.is_tracing(), gc.isenabled()
    gc.disable()
    tracemalloc.start()
    try:
        left, most = _allocated(subject)
        for _ in range(AGAIN if max(left, most) > NOISE else 0):
            left, most = min((left, most), _allocated(subject), key=max)
    finally:
        if not was_tracing:
            tracemalloc.stop()
        if collecting:
            gc.enable()
    if max(left, most) > NOISE:
        raise CheckError(f"{LOOPS} steps left {left} bytes allocated, and had {most} at their peak")
    return f"{LOOPS} steps, {max(0, left)} bytes"


def _allocated(subject: Subject) -> tuple[int, int]:
    """Bytes that steps have left, and had at their peak."""
    _run_steps(subject, WARM)
    tracemalloc.reset_peak()
    began, _ = tracemalloc.get_traced_memory()
    _run_steps(subject, LOOPS)
    ended, peak = tracemalloc.get_traced_memory()
    return ended - began, peak - began


def _run_steps(subject: Subject, n: int) -> None:
    """So many steps, from the state before again and again where no more of them stay finite."""
    run, finite = subject.plans.step.bound.run, subject.replays
    for k in range(n):
        if k % finite == 0:
            subject.rewind()
        run()

"""The executed trace, op by op: each row of the table runs by itself and is compared with eager execution."""

from collections.abc import Sequence

import numpy as np

from .....base.arrays import Array
from .....tape.numerics.engine import machine
from .....tape.numerics.engine.threads import THREADS
from .....tape.record.op import OPS
from ....ir.loops import SCAN
from ....lower.bind import Bound
from ....optim.state_ops import STATE_OPS
from ..bits import difference, owner_of
from ..extents import Extent, extent, written
from ..report import CheckError
from ..subject import Part, Subject
from .evaluate import by_kernels, evaluate

JUNK = (0xA5, 0x42)
"""Bytes that memory is filled with before a step must write it: as floats, plausible numbers."""


def check_trace(subject: Subject) -> str:
    """Every op of every plan writes what its nodes compute eagerly, backward included, and nothing else."""
    for part in subject.parts:
        follow_rows(subject, part)
        subject.restore()
    return f"{sum(part.bound.count for part in subject.parts)} ops run one by one"


def follow_rows(subject: Subject, part: Part) -> None:
    """The same for one plan, which changes parameters and state. Raises CheckError naming the op."""
    bound, program = part.bound, part.program
    expected = evaluate(program.graph.nodes, subject.declared(part), by_kernels)
    fill_arena(bound, JUNK[0])
    memory, nodes = _Memory(part), {node.id: node for node in program.graph.nodes}
    with THREADS.lent() as control:
        for i, op in enumerate(program.ops):
            memory.note()
            if machine.run(bound.rows_address + 8 * machine.ROW * i, 1, control, bound.fault):
                raise CheckError(f"{part.op_name(i)}: reported the status {bound.fault[0]}")
            memory.require_only(i)
            if op.source in nodes and nodes[op.source].op not in STATE_OPS:
                _require_values(part, i, expected)


def fill_arena(bound: Bound, byte: int) -> None:
    """Overwrite all that a step computes."""
    for root in bound.plan.slots:
        bound.memory[root][:] = byte


def _require_values(part: Part, i: int, expected: dict[int, Array]) -> None:
    """The values of the graph that an op has just written have the bits of eager execution."""
    writes = written(part.program, part.program.ops[i])
    for node in part.program.graph.nodes:
        for id in node.outputs if node.op in OPS or node.op == SCAN else ():
            wrong = difference(expected[id], part.bound.value(id)) if _lies_within(part, id, writes) else None
            if wrong is not None:
                raise CheckError(f"{part.op_name(i)}: %{id} of {part.node_name(node)}: {wrong}")


def _lies_within(part: Part, id: int, writes: Sequence[Extent]) -> bool:
    root, begin, end = extent(part.program, id)
    return any(root == r and b <= begin and end <= e for r, b, e in writes)


class _Memory:
    """All memory that a plan points to, watched for writes."""

    def __init__(self, part: Part) -> None:
        self.part = part
        owners = {id(owner): owner for owner in map(owner_of, part.bound.memory.values())}
        self._regions = [owner.reshape(-1).view(np.uint8) for owner in owners.values()]
        self._before: list[Array] = []

    def note(self) -> None:
        """Remember what is there."""
        self._before = [region.copy() for region in self._regions]

    def require_only(self, i: int) -> None:
        """Raise CheckError if anything has changed but what op ``i`` may write."""
        allowed = self._allowed(i)
        for region, before in zip(self._regions, self._before, strict=True):
            changed = np.flatnonzero(region != before) + int(region.ctypes.data)
            for begin, end in allowed:
                changed = changed[(changed < begin) | (changed >= end)]
            if changed.size:
                raise CheckError(f"{self.part.op_name(i)}: wrote outside of its outputs: {self._at(int(changed[0]))}")

    def _allowed(self, i: int) -> list[tuple[int, int]]:
        part, plan = self.part, self.part.bound.plan
        ranges: list[tuple[int, int]] = []
        for root, begin, end in written(part.program, part.program.ops[i]):
            start = int(part.bound.memory[root].ctypes.data)
            ranges.append((start + begin, start + end))
        if i in plan.scratch:
            root, block = next(iter(plan.slots.items()))
            start = int(part.bound.memory[root].ctypes.data) - block.offset + plan.scratch[i].offset
            ranges.append((start, start + plan.scratch[i].nbytes))
        return ranges

    def _at(self, address: int) -> str:
        """Whose memory an address is."""
        for root, memory in self.part.bound.memory.items():
            start = int(memory.ctypes.data)
            if start <= address < start + memory.nbytes:
                return f"byte {address - start} of %{root}"
        return f"address {address:#x}"

"""The executed trace: each op runs by itself where the step runs, and is compared with eager execution here."""

from collections.abc import Sequence

import numpy as np

from .....base.arrays import Array
from .....tape.record.op import OPS
from ....ir.bodies import ATTRIBUTES
from ....lower.bind import Fault
from ....optim.state_ops import STATE_OPS
from ..bits import difference, owner_of
from ..extents import Extent, extent, written
from ..report import CheckError
from ..subject import Part, Subject
from .evaluate import by_kernels, evaluate

JUNK = (0xA5, 0x42)
"""Bytes that memory is filled with before a step must write it: as floats, plausible numbers."""


def check_trace(subject: Subject) -> str:
    """Every op of every plan writes what its nodes compute eagerly, backward included.

    Nor does it write anything else, where that can be seen: in this machine's memory.
    """
    for part in subject.parts:
        follow_ops(subject, part)
        subject.restore()
    return f"{sum(len(part.program.ops) for part in subject.parts)} ops run one by one"


def follow_ops(subject: Subject, part: Part) -> None:
    """The same for one plan, which changes parameters and state. Raises CheckError naming the op."""
    bound, ops = part.executable.bound, part.program.ops
    expected = evaluate(part.program.graph.nodes, subject.declared(part), by_kernels)
    bound.fill(JUNK[0])
    memory = _Memory(part) if subject.is_here else None
    nodes = {node.id: node for node in part.program.graph.nodes}
    try:
        for i in bound.one_by_one():
            if memory is not None:
                memory.require_only(i)
            if ops[i].source in nodes and nodes[ops[i].source].op not in STATE_OPS:
                _require_values(part, i, expected)
    except Fault as fault:
        raise CheckError(f"{part.op_name(ops.index(fault.op))}: reported the status {fault.status}") from None


def _require_values(part: Part, i: int, expected: dict[int, Array]) -> None:
    """The values of the graph that an op has just written have the bits of eager execution."""
    writes = written(part.program, part.program.ops[i])
    for node in part.program.graph.nodes:
        for id in node.outputs if node.op in OPS or node.op in ATTRIBUTES else ():
            wrong = (
                difference(expected[id], part.executable.bound.value(id)) if _lies_within(part, id, writes) else None
            )
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
        self._before = [region.copy() for region in self._regions]

    def require_only(self, i: int) -> None:
        """Raise CheckError if anything has changed since the last op but what op ``i`` may write."""
        allowed = self._allowed(i)
        for region, before in zip(self._regions, self._before, strict=True):
            changed = np.flatnonzero(region != before) + int(region.ctypes.data)
            for begin, end in allowed:
                changed = changed[(changed < begin) | (changed >= end)]
            if changed.size:
                raise CheckError(f"{self.part.op_name(i)}: wrote outside of its outputs: {self._at(int(changed[0]))}")
        self._before = [region.copy() for region in self._regions]

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

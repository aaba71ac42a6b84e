"""Extents: which bytes of which storage a value lies in, and which ops of a program read and write them."""

from typing import NamedTuple

from ...lower.program import LoweredOp, Program


class Extent(NamedTuple):
    """The bytes from ``begin`` up to ``end`` of the storage of a root."""

    root: int
    begin: int
    end: int

    def meets(self, other: "Extent") -> bool:
        """Whether two share a byte; empty ones lie where they begin."""
        if self.root != other.root:
            return False
        if self.begin == self.end or other.begin == other.end:
            return self.begin == other.begin
        return self.begin < other.end and other.begin < self.end


def extent(program: Program, value: int) -> Extent:
    """The smallest extent that holds a value."""
    place = program.places[value]
    layout = place.layout
    if layout.nbytes == 0:
        return Extent(place.root, layout.offset, layout.offset)
    steps = [(size - 1) * stride for size, stride in zip(layout.shape, layout.strides, strict=True)]
    begin = layout.offset + sum(min(0, step) for step in steps)
    end = layout.offset + sum(max(0, step) for step in steps) + layout.dtype.itemsize
    return Extent(place.root, begin, end)


def written(program: Program, op: LoweredOp) -> list[Extent]:
    """What an op writes."""
    return [extent(program, value) for value in op.outputs]


def read(program: Program, op: LoweredOp) -> list[Extent]:
    """What an op reads besides what it updates in place."""
    return [extent(program, value) for value in op.inputs]

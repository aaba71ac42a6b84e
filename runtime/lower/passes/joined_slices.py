"""Gradients of slices: blocks that are placed into zeros and added, side by side, are joined in one call."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from ....tape.numerics.basic import arithmetic
from ....tape.numerics.engine.launch import Words
from ....tape.ops.shape import kernels
from ..program import LoweredOp, Program
from .unit_factors import drop_unread


class Block(NamedTuple):
    """Columns of a sum: where they begin in a row, how many they are, and the value that they are of."""

    first: int
    run: int
    value: int


@dataclass(frozen=True, eq=False)
class Sum:
    """A sum of placed blocks: `last` makes it, of ``rows`` of ``pitch`` elements.

    Its ``width`` columns from ``first`` on are those of `parts`, or of a value where it has none.
    """

    last: LoweredOp
    rows: int
    pitch: int
    first: int
    width: int
    value: int = -1
    parts: tuple["Sum", ...] = ()

    def blocks(self) -> list[Block]:
        """What is added, from the first column on."""
        found, left = list[Block](), [(0, self)]
        while left:
            shift, each = left.pop()
            left += [(shift + each.first, part) for part in each.parts]
            if not each.parts:
                found.append(Block(shift + each.first, each.width, each.value))
        return sorted(found)

    def joined(self) -> LoweredOp | None:
        """One call that makes it, if several blocks lie side by side, each column in one of them."""
        if self.width != self.pitch or not self.parts:
            return None
        blocks = self.blocks()
        ends = [0, *(block.first + block.run for block in blocks)]
        if len(blocks) < 2 or ends != [*(block.first for block in blocks), self.pitch]:
            return None
        runs = [block.run for block in blocks]
        return replace(
            self.last,
            kernel=kernels.join_columns,
            inputs=tuple([block.value for block in blocks]),
            words=Words(self.rows, self.pitch, len(runs), *runs),
            work=self.rows * self.pitch,
            aliases=(),
            pointwise=False,
        )


def join_slices(program: Program) -> Program:
    """One kernel where the gradients of slices that make up an array are added, as of ``split`` or of a sequence's
    places.
    """
    if kernels.place_columns not in program.called:
        return program
    joined = {each.last: call for each in _sums(program).values() if (call := each.joined()) is not None}
    return drop_unread(program.with_ops([joined.get(op, op) for op in program.ops]))


def _sums(program: Program) -> dict[int, Sum]:
    """Every value that is a sum of placed blocks."""
    found = dict[int, Sum]()

    def known(value: int) -> Sum | None:
        """The sum that a value is as a whole."""
        layout, root = program.layout(value), program.root(value)
        whole = layout.is_dense and layout.offset == 0 and layout.nbytes == program.layout(root).nbytes
        return found.get(root) if whole else None

    for op in program.ops:
        each: Sum | None = None
        if op.kernel is kernels.place_columns and program.root(op.inputs[0]) not in program.graph.updates:
            each = _placed(op, known(op.inputs[0]))
        elif op.kernel is arithmetic.add:
            each = _added(op, known(op.inputs[0]), known(op.inputs[1]))
        if each is not None:
            found[program.root(op.outputs[0])] = each
    return found


def _placed(op: LoweredOp, inner: Sum | None) -> Sum:
    """A block, which may be all of another array, or those of a sum that has its rows."""
    assert isinstance(op.words, Words)
    rows, pitch, first, run = op.words.values.tolist()
    if inner is not None and not inner.parts and inner.width == inner.pitch:
        return Sum(op, rows, pitch, first, run, inner.value)
    if inner is None or (inner.rows, inner.pitch) != (rows, run):
        return Sum(op, rows, pitch, first, run, op.inputs[0])
    return Sum(op, rows, pitch, first, inner.width, parts=(inner,))


def _added(op: LoweredOp, a: Sum | None, b: Sum | None) -> Sum | None:
    if a is None or b is None or (a.rows, a.pitch) != (b.rows, b.pitch):
        return None
    return Sum(op, a.rows, a.pitch, 0, a.width + b.width, parts=(a, b))

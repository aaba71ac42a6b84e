"""Addends on a GPU: what is added to a product, or to sums down columns, is added before they are stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ....tape.numerics.basic import arithmetic
from ....tape.numerics.basic.copy import copy, joined_axes
from ....tape.numerics.engine.launch import Words
from ....tape.numerics.simd.sums import sum_columns
from ....tape.numerics.sizes import Sizes
from ....tape.ops.linear.kernels.gemm import gemm
from ....tape.ops.linear.kernels.product import Product
from ..program import LoweredOp, Program
from .unit_factors import drop_unread


@dataclass(frozen=True, slots=True)
class AddedProduct(Product):
    """A product to which an array is added in the end, the last of the kernel's arrays.

    Its rows, counted through the batch, are ``row`` bytes apart. Only a GPU computes it.
    """

    row: int = 0

    def words(self, strides: tuple[Sizes, ...]) -> Words:
        """Those of a product, then that there is an addend, and ``row``."""
        return Words(*Product.words(self, strides).values.tolist(), 1, self.row)

    def scratch(self, strides: tuple[Sizes, ...], parts: int) -> int:
        """None of the plan's."""
        return 0


def join_addends(program: Program) -> Program:
    """Every product and every sum down columns that only an addition reads, with the addition."""
    makers = {program.root(op.outputs[0]): op for op in program.ops if op.kernel in (gemm, sum_columns)}
    readers, kept, gone = program.readers(), program.kept, set[LoweredOp]()
    copies = {r: op for op in program.ops if op.kernel is copy and (r := program.root(op.outputs[0])) not in kept}
    ops = list[LoweredOp]()
    for op in program.ops:
        ops.append(op)
        for which in range(2 if op.kernel is arithmetic.add else 0):
            maker = makers.get(program.root(op.inputs[which]))
            if maker is None or not _reads_all(program, op, op.inputs[which], readers, kept):
                continue
            if (grown := _joined(program, maker, op, op.inputs[1 - which], copies)) is not None:
                ops[-1] = grown
                gone.add(maker)
                break
    return drop_unread(program.with_ops([op for op in ops if op not in gone]))


def _reads_all(
    program: Program, op: LoweredOp, value: int, readers: Mapping[int, Sequence[LoweredOp]], kept: set[int]
) -> bool:
    """Whether an op is the only one that reads what a value is, and reads all of it once in row-major order."""
    root, layout = program.root(value), program.layout(value)
    whole = layout.is_dense and layout.offset == 0 and layout.nbytes == program.layout(root).nbytes
    once = [program.root(v) for v in op.inputs].count(root) == 1
    return whole and once and root not in kept and readers[root] == [op]


def _joined(
    program: Program, maker: LoweredOp, add: LoweredOp, addend: int, copies: Mapping[int, LoweredOp]
) -> LoweredOp | None:
    if isinstance(maker.words, Product):
        if isinstance(maker.words, AddedProduct):
            return None
        product, copied = maker.words, copies.get(program.root(addend)) if program.layout(addend).is_dense else None
        row = None if copied is None else _row(program, copied, product)
        if copied is not None and row is not None:
            addend = copied.inputs[0]
        given = {name: getattr(product, name) for name in Product.__dataclass_fields__}
        words: Words | AddedProduct = AddedProduct(**given, row=product.n * product.itemsize if row is None else row)
    else:
        assert isinstance(maker.words, Words)
        words = Words(*maker.words.values.tolist(), 1)
    inputs = (*maker.inputs, addend)
    return replace(
        maker, outputs=add.outputs, inputs=inputs, words=words, source=add.source, work=maker.work + add.work
    )


def _row(program: Program, copied: LoweredOp, product: Product) -> int | None:
    """Bytes from row to row of what a copy reads, if elements of a row are neighbours there and rows equally far."""
    layout = program.layout(copied.inputs[0])
    axes = joined_axes(layout.shape, layout.strides)
    if copied.inputs[0] in program.graph.updates or len(axes) != 2:
        return None
    (rows, row), (n, step) = axes
    return row if rows == product.batch * product.m and n == product.n and step == product.itemsize else None

"""Addends: what is added to a product is added before the product is stored."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ....tape.numerics.basic import arithmetic
from ....tape.numerics.basic.copy import copy, joined_axes
from ....tape.numerics.engine.kernel import Kernel
from ....tape.numerics.engine.launch import Words
from ....tape.numerics.simd.sums import CHAIN_BLOCK, sum_columns
from ....tape.ops.linear.kernels.gemm import gemm
from ....tape.ops.linear.kernels.product import Product
from ..program import LoweredOp, Program
from .unit_factors import drop_unread


def join_addends(program: Program) -> Program:
    """Every product that only an addition reads, with the addition."""
    return _joined_with_makers(program, {gemm})


def join_addends_on_gpu(program: Program) -> Program:
    """The same, and sums down columns, to which a GPU can add too."""
    return _joined_with_makers(program, {gemm, sum_columns})


def _joined_with_makers(program: Program, kernels: set[Kernel]) -> Program:
    if kernels.isdisjoint(program.called):
        return program
    makers = {program.root(op.outputs[0]): i for i, op in enumerate(program.ops) if op.kernel in kernels}
    readers, kept, gone = program.readers, program.kept, set[LoweredOp]()
    copies = {r: op for op in program.ops if op.kernel is copy and (r := program.root(op.outputs[0])) not in kept}
    ops = list[LoweredOp]()
    for i, op in enumerate(program.ops):
        ops.append(op)
        for which in range(2 if op.kernel is arithmetic.add else 0):
            made = makers.get(program.root(op.inputs[which]))
            if made is None or not _reads_all(program, op, op.inputs[which], readers, kept):
                continue
            maker = program.ops[made]
            if _changed(program, maker, program.ops[made + 1 : i]):
                continue
            if (grown := _joined(program, maker, op, op.inputs[1 - which], copies)) is not None:
                ops[-1] = grown
                gone.add(maker)
                break
    return drop_unread(program.with_ops([op for op in ops if op not in gone])) if gone else program


def _changed(program: Program, maker: LoweredOp, between: Sequence[LoweredOp]) -> bool:
    """Whether anything that an op reads is written behind it."""
    read = {program.root(v) for v in maker.inputs}
    return any(program.root(v) in read for op in between for v in op.outputs)


def _reads_all(
    program: Program, op: LoweredOp, value: int, readers: Mapping[int, Sequence[LoweredOp]], kept: Collection[int]
) -> bool:
    """Whether an op is the only one that reads what a value is, and reads all of it once in row-major order."""
    root, layout = program.root(value), program.layout(value)
    whole = layout.is_dense and layout.offset == 0 and layout.nbytes == program.layout(root).nbytes
    once = [program.root(v) for v in op.inputs].count(root) == 1
    return whole and once and root not in kept and readers[root] == [op]


def _joined(
    program: Program, maker: LoweredOp, add: LoweredOp, addend: int, copies: Mapping[int, LoweredOp]
) -> LoweredOp | None:
    outputs, work = add.outputs, maker.work + add.work
    if not isinstance(maker.words, Product):
        assert isinstance(maker.words, Words)
        words, inputs = Words(*maker.words.values.tolist(), 1), (*maker.inputs, addend)
        return replace(maker, outputs=outputs, inputs=inputs, words=words, source=add.source, work=work)
    product = maker.words
    if product.added:
        return None
    row, aliases = product.n * product.itemsize, (len(maker.inputs),) if product.k <= CHAIN_BLOCK else ()
    copied = copies.get(program.root(addend)) if program.layout(addend).is_dense else None
    if copied is not None and (pitch := _row(program, copied, product)) is not None:
        addend, row, aliases = copied.inputs[0], pitch, ()
    return replace(
        maker, outputs=outputs, inputs=(*maker.inputs, addend), words=replace(product, added=row), source=add.source,
        work=work, aliases=aliases,
    )  # fmt: skip


def _row(program: Program, copied: LoweredOp, product: Product) -> int | None:
    """Bytes from row to row of what a copy reads, if elements of a row are neighbours there and rows equally far."""
    layout = program.layout(copied.inputs[0])
    axes = joined_axes(layout.shape, layout.strides)
    if copied.inputs[0] in program.graph.updates or len(axes) != 2:
        return None
    (rows, row), (n, step) = axes
    return (
        row if row > 0 and rows == product.batch * product.m and n == product.n and step == product.itemsize else None
    )

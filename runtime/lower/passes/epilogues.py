"""Epilogues: what is done to each element of a product is done before the product is stored.

A bias, a relu or the mask of a relu's gradient joins the product where no one else reads what lies between.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ....tape.numerics.basic import arithmetic
from ....tape.numerics.basic.copy import copy
from ....tape.ops.elementwise.kernels import basic as kernels
from ....tape.ops.linear.kernels.gemm import gemm
from ....tape.ops.linear.kernels.product import Product
from ..program import LoweredOp, Program
from .unit_factors import drop_unread


def fuse_epilogues(program: Program) -> Program:
    """Every product with as much of its epilogue as follows it."""
    if gemm not in program.called:
        return program
    readers, kept = program.readers, program.kept
    born = {v: i for i, op in enumerate(program.ops) for v in op.outputs if program.is_static(program.root(v))}
    copies = {program.root(op.outputs[0]): op for op in program.ops if op.kernel is copy}
    gone: set[LoweredOp] = set()
    ops: list[LoweredOp] = []
    for i, op in enumerate(program.ops):
        while op.kernel is gemm and (follower := _only_reader(program, op, readers, kept)):
            grown = _joined(program, op, follower, copies)
            if grown is None or any(born.get(program.root(v), -1) >= i for v in grown.inputs):
                break
            gone.add(follower)
            op = grown
        ops.append(op)
    return drop_unread(program.with_ops([op for op in ops if op not in gone])) if gone else program


def _only_reader(
    program: Program, op: LoweredOp, readers: Mapping[int, Sequence[LoweredOp]], kept: Collection[int]
) -> LoweredOp | None:
    """The one op that reads the whole output in row-major order, if there is no other."""
    root = program.root(op.outputs[0])
    found = readers.get(root, ())
    if root in kept or len(found) != 1 or not found[0].pointwise:
        return None
    reads = [v for v in found[0].inputs if program.root(v) == root]
    layout = program.layout(reads[0])
    whole = layout.is_dense and layout.offset == 0 and layout.nbytes == program.layout(root).nbytes
    return found[0] if len(reads) == 1 and whole else None


def _joined(program: Program, op: LoweredOp, follower: LoweredOp, copies: Mapping[int, LoweredOp]) -> LoweredOp | None:
    """The product with its follower as epilogue, or None if it is none."""
    product, root = op.words, program.root(op.outputs[0])
    assert isinstance(product, Product)
    first = program.root(follower.inputs[0]) == root
    if product.relu or product.mask:
        return None
    if follower.kernel is kernels.relu:
        return replace(op, outputs=follower.outputs, words=replace(product, relu=True))
    if follower.kernel is kernels.where_positive and first:
        inputs = (*op.inputs, follower.inputs[1])
        return replace(op, outputs=follower.outputs, inputs=inputs, words=replace(product, mask=True))
    if follower.kernel is arithmetic.add and not product.bias:
        other = program.root(follower.inputs[1 if first else 0])
        bias = _repeated_row(program, copies.get(other), product.n)
        if bias is not None:
            inputs = (*op.inputs, bias)
            return replace(op, outputs=follower.outputs, inputs=inputs, words=replace(product, bias=True))
    return None


def _repeated_row(program: Program, maker: LoweredOp | None, n: int) -> int | None:
    """The row of n elements that a copy repeats down all other axes."""
    if maker is None:
        return None
    given = program.layout(maker.inputs[0])
    if not given.shape or given.shape[-1] != n or given.offset or any(given.strides[:-1]):
        return None
    root = program.root(maker.inputs[0])
    row = program.layout(root)
    unit = given.strides[-1] == given.dtype.itemsize
    return root if unit and row.is_dense and row.nbytes == n * given.dtype.itemsize else None

"""Sums of products: what a loop adds to its state step by step is one product behind the loop.

The gradient of a weight that every step multiplies by is such a sum. Its operands lie in rows of the loop's arrays, so
they are there when the loop has ended, and the sum is made in the order of the steps, as in the loop.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ....tape.numerics.simd.sums import CHAIN_BLOCK
from ....tape.ops.linear.kernels.gemm import gemm
from ....tape.ops.linear.kernels.product import Product
from ..array_layout import ArrayLayout
from ..loop import LoopPlan
from ..program import LoweredOp, Program, StoragePlace


class _Sum(NamedTuple):
    """An op of a loop's body that adds a product to a part of the state, and where that lies in the loop's arrays."""

    op: LoweredOp
    part: int
    result: int
    start: int


def sum_products(program: Program) -> Program:
    """What a loop only adds products to becomes one sum of products behind the loop."""
    if LoopPlan.kernel not in program.called:
        return program
    ops, places = list[LoweredOp](), dict(program.places)
    for op in program.ops:
        behind = list[LoweredOp]()
        while isinstance(op.words, LoopPlan) and (found := next(_sums(op.words), None)):
            behind.append(_product(op, op.words, found, places))
            op = _without(op, op.words, found)
        ops += [op, *behind]
    return replace(program, ops=tuple(ops), places=places)


def _sums(loop: LoopPlan) -> Iterator[_Sum]:
    """The sums of products that nothing else in the loop reads, whose operands are rows of its arrays."""
    if loop.open or len(loop.places) < 2:
        return
    program = loop.body.program
    kept = [program.root(v) for v in loop.outputs.values()]
    for part, before in enumerate(loop.carried):
        key = f"carry {part}"
        made = program.root(loop.outputs[key])
        ops = [op for op in program.ops if {before, made} & {program.root(v) for v in op.table}]
        if key not in loop.results or len(ops) != 1 or kept.count(made) > 1 or not _adds(program, ops[0], before):
            continue
        if all(loop.home(v).stride for v in ops[0].inputs[:2]):
            kinds = [kind for kind, _ in loop.inputs]
            start = next(i for i, (_, id) in enumerate(loop.inputs) if id == before and kinds[i] == "carry")
            yield _Sum(ops[0], part, loop.results.index(key), start)


def _adds(program: Program, op: LoweredOp, before: int) -> bool:
    """Whether an op adds one product, and does no more, to all that a part of the state was before."""
    product = op.words
    if op.kernel is not gemm or not isinstance(product, Product) or op.inputs[-1] != before:
        return False
    more = product.bias or product.relu or product.mask or product.batch > 1
    dense = product.added == product.n * product.itemsize and program.layout(before).is_dense
    return dense and not more and 0 < product.k <= CHAIN_BLOCK


def _product(op: LoweredOp, loop: LoopPlan, found: _Sum, places: dict[int, StoragePlace]) -> LoweredOp:
    """The sum of the products of all steps, from what the state was before the first."""
    product, steps = found.op.words, len(loop.places)
    assert isinstance(product, Product), "found by its words"
    operands = [_rows(op, loop, v, places) for v in found.op.inputs[:2]]
    return replace(
        found.op,
        outputs=(op.outputs[found.result],),
        inputs=(*operands, op.inputs[found.start]),
        words=replace(product, batch=steps, group=1, summed=True),
        work=found.op.work * steps,
        source=op.source,
        strided=(0, 1),
        aliases=(2,),
    )


def _rows(op: LoweredOp, loop: LoopPlan, value: int, places: dict[int, StoragePlace]) -> int:
    """The matrices that a value of the body is in all steps, in their order, as a value of the program."""
    home, inner = loop.home(value), loop.body.program.layout(value)
    whole, made = places[op.table[home.base]], max(places) + 1
    offset = whole.layout.offset + home.offset + loop.places.start * home.stride
    shape = (len(loop.places), *inner.shape[-2:])
    strides = (loop.places.step * home.stride, *inner.strides[-2:])
    places[made] = StoragePlace(whole.root, ArrayLayout(shape, strides, offset, inner.dtype))
    return made


def _without(op: LoweredOp, loop: LoopPlan, found: _Sum) -> LoweredOp:
    """The loop without the sum."""
    words = loop.without(found.op, found.part)
    outputs = (*op.outputs[: found.result], *op.outputs[found.result + 1 :])
    inputs = (*op.inputs[: found.start], *op.inputs[found.start + 1 :])
    return replace(op, outputs=outputs, inputs=inputs, words=words, work=words.work)

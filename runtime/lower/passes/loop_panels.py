"""Panels for loops: what the products of a loop read at every turn is copied in their order once, before the loop.

A weight is such a matrix. Its products have few rows there, for which a copy at every turn is a part of the time.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ....tape.numerics.engine.launch import Words
from ....tape.ops.linear.kernels.gemm import FEW_ROWS, gemm
from ....tape.ops.linear.kernels.panels import pack_panels, panel_elements
from ....tape.ops.linear.kernels.product import B, Product
from ..array_layout import ArrayLayout
from ..loop import LoopPlan
from ..program import LoweredOp, Program, StoragePlace

OPERAND = B - 1
"""The position of b among the inputs."""


def pack_for_loops(program: Program) -> Program:
    """What a product reads at every turn of a loop is copied in its order once, before the loop."""
    if LoopPlan.kernel not in program.called:
        return program
    ops, places = list[LoweredOp](), dict(program.places)
    for op in program.ops:
        if isinstance(op.words, LoopPlan) and not op.words.open and len(op.words.places) > 1:
            ops += _with_panels(op, op.words, places)
        else:
            ops.append(op)
    return replace(program, ops=tuple(ops), places=places)


def _with_panels(op: LoweredOp, loop: LoopPlan, places: dict[int, StoragePlace]) -> Sequence[LoweredOp]:
    """The calls that make the panels of a loop, and the loop that reads them."""
    body = loop.body.program
    calls, inner = list[LoweredOp](), dict(body.places)
    panels, made = dict[StoragePlace, int](), list[LoweredOp]()
    for call in body.ops:
        if _reads_again(loop, call):
            matrix = call.inputs[OPERAND]
            if inner[matrix] not in panels:
                made.append(_packed(op, loop, matrix, places))
                panels[inner[matrix]] = max(inner) + 1
                inner[max(inner) + 1] = StoragePlace(max(inner) + 1, places[made[-1].outputs[0]].layout)
            call = _reading(call, panels[inner[matrix]])
        calls.append(call)
    if not made:
        return [op]
    words = loop.reading(replace(body, ops=tuple(calls), places=inner), list(panels.values()))
    return [*made, replace(op, inputs=(*op.inputs, *[each.outputs[0] for each in made]), words=words)]


def _reads_again(loop: LoopPlan, call: LoweredOp) -> bool:
    """Whether a call would copy the same matrix from around the loop into panels at every turn."""
    if call.kernel is not gemm or not isinstance(call.words, Product):
        return False
    matrix, product = call.inputs[OPERAND], call.words
    layout, given = loop.body.program.layout(matrix), loop.home(matrix).base - len(loop.results)
    around = 0 <= given < len(loop.inputs) and loop.inputs[given][0] == "around"
    copied = product.m > FEW_ROWS or layout.strides[-1] != product.itemsize
    return around and copied and len(layout.shape) == 2 and layout.nbytes > 0


def _packed(op: LoweredOp, loop: LoopPlan, matrix: int, places: dict[int, StoragePlace]) -> LoweredOp:
    """The call that makes the panels of a matrix of the body, which become a value of the program."""
    home, layout = loop.home(matrix), loop.body.program.layout(matrix)
    whole, source, made = places[op.table[home.base]], max(places) + 1, max(places) + 2
    places[source] = StoragePlace(whole.root, replace(layout, offset=whole.layout.offset + home.offset))
    depth, columns = layout.shape
    elements = panel_elements(depth, columns, layout.dtype.itemsize)
    places[made] = StoragePlace(made, ArrayLayout.dense((elements,), layout.dtype))
    words = Words(depth, columns, *layout.strides)
    return LoweredOp(pack_panels, layout.dtype, (made,), (source,), words, prod(layout.shape), op.source)


def _reading(call: LoweredOp, panels: int) -> LoweredOp:
    """A product with its second operand in panels."""
    assert isinstance(call.words, Product), "found by its words"
    inputs = (*call.inputs[:OPERAND], panels, *call.inputs[OPERAND + 1 :])
    return replace(call, inputs=inputs, words=replace(call.words, panels=True), strided=(0,))

"""Softmax and cross-entropy: the rows of the loss and of its gradient in one pass over the logits."""

from dataclasses import replace

from ....tape.ops.reduce.kernels import softmax as kernels_softmax
from ..program import LoweredOp, Program


def fuse_cross_entropy(program: Program) -> Program:
    """One kernel where the losses of some logits are followed by their gradient."""
    if kernels_softmax.cross_entropy_grad not in program.called:
        return program
    forward: dict[tuple[int, ...], LoweredOp] = {}
    born = {v: i for i, op in enumerate(program.ops) for v in op.outputs if program.is_static(program.root(v))}
    position = {op: i for i, op in enumerate(program.ops)}
    fused: dict[LoweredOp, LoweredOp] = {}
    gone: set[LoweredOp] = set()
    for op in program.ops:
        if op.kernel is kernels_softmax.cross_entropy_rows:
            forward[op.inputs] = op
        if op.kernel is not kernels_softmax.cross_entropy_grad:
            continue
        rows = forward.pop(op.inputs[:2], None)
        if rows is None or born.get(program.root(op.inputs[2]), -1) > position[rows]:
            continue
        fused[rows] = replace(
            rows,
            kernel=kernels_softmax.cross_entropy_rows_with_grad,
            outputs=rows.outputs + op.outputs,
            inputs=op.inputs,
            work=rows.work + op.work,
        )
        gone.add(op)
    return program.with_ops([fused.get(op, op) for op in program.ops if op not in gone])

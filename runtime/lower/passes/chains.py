"""Chains of elementwise ops: neighbours over equally many elements become one op that runs block by block."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import groupby
from math import prod
from typing import Any

import numpy as np

from ....tape.numerics.basic.copy import copy
from ....tape.numerics.engine.chain import BLOCK, MAX_OPERANDS, Chain, Link, chain
from ....tape.numerics.engine.launch import Words
from ..program import LoweredOp, Program

BYTE = np.dtype(np.bool_)


def fuse_chains(program: Program) -> Program:
    """Runs of at least two neighbours over more than one block, joined."""
    runs = list(_runs(program))
    if not any(size and len(run) > 1 for size, run in runs):
        return program
    readers, kept = program.readers, program.kept
    ops: list[LoweredOp] = []
    for size, run in runs:
        ops += run if not size or len(run) < 2 else [_joined(program, size, run, readers, kept)]
    return program.with_ops(ops)


def _runs(program: Program) -> Iterator[tuple[int, list[LoweredOp]]]:
    """Neighbours that can run block by block, with their number of elements; 0 for those that cannot."""
    for size, ops in groupby(program.ops, partial(_chained_size, program)):
        run: list[LoweredOp] = []
        for op in ops:
            if _spreads(program, op, run):
                yield size, run
                run = []
            run.append(op)
        yield size, run


def _spreads(program: Program, op: LoweredOp, run: Sequence[LoweredOp]) -> bool:
    """Whether an op repeats an element that the run makes, perhaps in a later block."""
    return op.kernel is copy and any(program.root(op.inputs[0]) in other.outputs for other in run)


def _chained_size(program: Program, op: LoweredOp) -> int:
    """The elements of an op that may be part of a chain, else 0."""
    if not op.pointwise or not isinstance(op.words, Words) or len(op.table) > MAX_OPERANDS or op.refusal:
        return 0
    size = prod(program.layout(op.outputs[0]).shape)
    return size if size > BLOCK else 0


def _joined(program: Program, size: int, run: Sequence[LoweredOp], readers: Any, kept: Collection[int]) -> LoweredOp:
    inside = set(run)
    made = [v for op in run for v in op.outputs]
    local = [v for v in made if v not in kept and all(reader in inside for reader in readers.get(v, ()))]
    outputs = tuple([v for v in made if v not in local])
    inputs = tuple(dict.fromkeys(v for op in run for v in op.inputs if program.root(v) not in made))
    places = {v: i for i, v in enumerate(outputs + inputs)} | {v: -1 - i for i, v in enumerate(local)}
    links = [_link(program, op, places) for op in run]
    words = Chain(size, len(outputs + inputs), len(local), links)
    return LoweredOp(chain, BYTE, outputs, inputs, words, sum(op.work for op in run), run[-1].source)


def _link(program: Program, op: LoweredOp, places: dict[int, int]) -> Link:
    assert isinstance(op.words, Words)
    operands = tuple([places[v] if v in places else places[program.root(v)] for v in op.table])
    return Link(op.kernel, op.element, op.words, operands, tuple([program.layout(v).dtype.itemsize for v in op.table]))

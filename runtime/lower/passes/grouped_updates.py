"""Grouped updates: parameters that one rule updates lie side by side and are updated by one call.

So do their buffers and their gradients, each in one block with the same gaps. An update is elementwise, so
nothing of it can be seen in the bits; the gaps hold zeros.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, groupby
from typing import Any

from ....tape.numerics.basic.finite import finite
from ....tape.numerics.engine.launch import Words
from ...ir.graph import Role
from ...optim.state_ops import STATE_OPS
from ...step.memory import aligned
from ..array_layout import ArrayLayout
from ..program import LoweredOp, Program, StoragePlace


def group_updates(program: Program) -> Program:
    """Neighbouring updates by one rule joined, with one check that their gradients are finite."""
    rank = {value.id: i for i, value in enumerate(program.graph.with_role(Role.PARAM))}
    for key, run in groupby(enumerate(program.ops), partial(_kind, program, rank)):
        for found in _separable(program, [op for _, op in run]) if key is not None else ():
            if len(found) > 1:
                program = _grouped(program, found)
    return program


def _kind(program: Program, rank: Mapping[int, int], numbered: tuple[int, LoweredOp]) -> Any:
    """What updates that can be joined have in common; None for what is no update.

    ``rank`` are the places of the parameters among each other: neighbours in memory, not only in time, are joined.
    """
    i, op = numbered
    record = STATE_OPS.get(op.kernel.name)
    if record is None or not record.elementwise or not isinstance(op.words, Words):
        return None
    if program.root(op.outputs[0]) not in rank:  # no parameter
        return None
    if not program.layout(op.outputs[0]).nbytes:  # numpy gives empty arrays no address of their own
        return None
    scalars = tuple([program.root(v) for v in op.inputs[1:]])
    line = rank[program.root(op.outputs[0])] - i
    return op.kernel.name, op.element, tuple(op.words.values[1:].tolist()), scalars, line


def _separable(program: Program, ops: Sequence[LoweredOp]) -> list[list[LoweredOp]]:
    """The stretches of which each gradient has memory of its own, made by this program, which it fills.

    Two parameters may have one gradient, as the shifts of two norms that are added: the second is updated by itself.
    """
    stretches, seen = [list[LoweredOp]()], set[int]()
    for op in ops:
        root, layout = program.root(op.inputs[0]), program.layout(op.inputs[0])
        fills = layout.is_dense and layout.nbytes == program.layout(root).nbytes
        if root not in seen and program.is_static(root) and fills:
            stretches[-1].append(op)
        else:
            stretches.append([])
        seen.add(root)
    return stretches


def _grouped(program: Program, ops: Sequence[LoweredOp]) -> Program:
    columns = [*zip(*(op.outputs for op in ops), strict=True), tuple(op.inputs[0] for op in ops)]
    places, groups = dict(program.places), dict(program.groups)
    first = max(places) + 1
    wholes = tuple(range(first, first + len(columns)))
    nbytes = [program.layout(v).nbytes for v in columns[0]]
    *offsets, end = accumulate(map(aligned, nbytes), initial=0)
    moved: dict[int, tuple[int, int]] = {}
    for whole, column in zip(wholes, columns, strict=True):
        roots = [program.root(v) for v in column]
        groups[whole] = dict(zip(roots, offsets, strict=True))
        moved |= {root: (whole, offset) for root, offset in groups[whole].items()}
        places[whole] = StoragePlace(whole, ArrayLayout.dense((end // ops[0].element.itemsize,), ops[0].element))
    places |= {v: _moved(place, moved) for v, place in places.items() if place.root in moved}
    return replace(program, places=places, groups=groups, ops=_rewritten(program, ops, wholes, places))


def _moved(place: StoragePlace, moved: Mapping[int, tuple[int, int]]) -> StoragePlace:
    whole, offset = moved[place.root]
    return StoragePlace(whole, place.layout.further(offset))


def _rewritten(
    program: Program, ops: Sequence[LoweredOp], wholes: tuple[int, ...], places: Mapping[int, StoragePlace]
) -> tuple[LoweredOp, ...]:
    """The ops with one update and one check in place of those of the group."""
    size = places[wholes[0]].layout.shape[0]
    assert isinstance(ops[0].words, Words), "an update has fixed words"
    attributes = ops[0].words.values[1:].tolist()
    update = replace(
        ops[0],
        outputs=wholes[:-1],
        inputs=(wholes[-1], *ops[0].inputs[1:]),
        words=Words(size, *attributes),
        work=sum(op.work for op in ops),
    )
    checks = [op for op in program.ops if op.kernel is finite and places[op.inputs[0]].root == wholes[-1]]
    checked = {program.root(op.inputs[0]) for op in checks}
    gone = {*ops, *checks} if checked == {program.root(op.inputs[0]) for op in ops} else set(ops)
    work = sum(op.work for op in checks)
    check = replace(checks[-1], inputs=(wholes[-1],), words=Words(size), work=work) if len(gone) > len(ops) else None
    made: list[LoweredOp] = []
    for op in program.ops:
        if op is ops[0]:
            made.append(update)
        elif check is not None and op is checks[-1]:
            made.append(check)
        elif op not in gone:
            made.append(op)
    return tuple(made)

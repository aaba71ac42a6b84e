"""Steps that several ops have in common, such as the weights that each gradient of attention begins with."""

from dataclasses import replace
from typing import Any

from ....tape.numerics.engine.launch import Words
from ..program import LoweredOp, Program, StoragePlace
from .unit_factors import followed


def share_steps(program: Program) -> Program:
    """Without kernel calls that repeat an earlier one on the same elements, within ops that go on from there."""
    known: dict[Any, LoweredOp] = {}
    moved: dict[int, StoragePlace] = {}
    ops: list[LoweredOp] = []
    for op in program.ops:
        overwritten = {program.root(v) for v in op.outputs} - set(op.outputs)
        if overwritten:
            known = {key: made for key, made in known.items() if not overwritten & {place.root for place in key[-1]}}
        if overwritten or len(op.outputs) != 1:
            ops.append(op)
            continue
        key = _key(op, tuple([followed(program.places[v], moved) for v in op.inputs]))
        first = known.setdefault(key, op)
        if first is op or op.outputs[0] in program.graph.values:
            ops.append(op)
        else:
            moved[op.outputs[0]] = program.places[first.outputs[0]]
    places = {v: followed(place, moved) for v, place in program.places.items()}
    return replace(program, ops=tuple(ops), places=places)


def _key(op: LoweredOp, inputs: tuple[StoragePlace, ...]) -> Any:
    words = op.words.values.tobytes() if isinstance(op.words, Words) else op.words
    return op.kernel, op.element, words, op.strided, op.refusal, inputs

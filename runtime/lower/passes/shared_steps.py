"""Steps that several ops have in common, such as the weights that each gradient of attention begins with."""

from typing import Any

from ....tape.numerics.engine.launch import Words
from ..program import LoweredOp, Program, StoragePlace
from .unit_factors import followed, moved_to


def share_steps(program: Program) -> Program:
    """Without kernel calls that repeat an earlier one on the same elements, within ops that go on from there."""
    inner = {op.kernel for op in program.ops for v in op.outputs if v not in program.graph.values}
    if not inner:
        return program
    known: dict[Any, LoweredOp] = {}
    reading: dict[int, list[Any]] = {}
    moved: dict[int, StoragePlace] = {}
    ops: list[LoweredOp] = []
    places = program.places
    for op in program.ops:
        overwritten = [root for v in op.outputs if (root := places[v].root) not in op.outputs]
        for key in [key for root in overwritten for key in reading.pop(root, ())]:
            known.pop(key, None)
        if overwritten or len(op.outputs) != 1 or op.kernel not in inner:
            ops.append(op)
            continue
        key = _key(op, tuple([followed(places[v], moved) for v in op.inputs]))
        first = known.setdefault(key, op)
        if first is op:
            for place in key[-1]:
                reading.setdefault(place.root, []).append(key)
        if first is op or op.outputs[0] in program.graph.values:
            ops.append(op)
        else:
            moved[op.outputs[0]] = places[first.outputs[0]]
    return moved_to(program, ops, moved) if moved else program


def _key(op: LoweredOp, inputs: tuple[StoragePlace, ...]) -> Any:
    words = op.words.values.tobytes() if isinstance(op.words, Words) else op.words
    return op.kernel, op.element, words, op.strided, op.refusal, inputs

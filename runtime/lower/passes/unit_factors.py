"""Products by the constant 1, as a loss's own cotangent brings them: ``x * 1`` is x to the bit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....tape.numerics.basic.copy import copy
from ....tape.ops.elementwise.kernels import basic as kernels
from ...ir.graph import Role
from ..program import LoweredOp, Program, StoragePlace


def drop_unit_factors(program: Program) -> Program:
    """Without products by a repeated constant 1: their results are their other factors."""
    ones = {op.outputs[0] for op in program.ops if op.kernel is copy and _is_one(program, op.inputs[0])}
    if not ones:
        return program
    moved: dict[int, StoragePlace] = {}
    ops: list[LoweredOp] = []
    for op in program.ops:
        factors = [v for v in op.inputs if v not in ones] if op.kernel is kernels.mul else []
        place = followed(program.places[factors[0]], moved) if len(factors) == 1 else None
        if place is not None and place.root not in program.graph.updates:
            # what the step overwrites is no such factor: a product may be read after the update
            moved[op.outputs[0]] = place
        else:
            ops.append(op)
    return drop_unread(moved_to(program, ops, moved)) if moved else program


def moved_to(program: Program, ops: Sequence[LoweredOp], moved: Mapping[int, StoragePlace]) -> Program:
    """A program of some of its ops, with the places of all values `followed`."""
    places = {v: followed(place, moved) if place.root in moved else place for v, place in program.places.items()}
    return replace(program, ops=tuple(ops), places=places)


def followed(place: StoragePlace, moved: Mapping[int, StoragePlace]) -> StoragePlace:
    """A place after its root has become part of another, whose elements lie there side by side."""
    if place.root not in moved:
        return place
    whole = moved[place.root]
    return StoragePlace(whole.root, place.layout.further(whole.layout.offset))


def _is_one(program: Program, value: int) -> bool:
    """Whether a value repeats the constant 1."""
    constant = program.graph.values.get(program.root(value))
    return constant is not None and constant.role is Role.CONST and constant.content == "1.0"


def drop_unread(program: Program) -> Program:
    """Without the ops whose outputs no one reads any more."""
    live, places, ops = set(program.kept), program.places, list[LoweredOp]()
    for op in reversed(program.ops):
        roots = [places[v].root for v in op.outputs]
        if not live.isdisjoint(roots) or not all(map(program.is_static, roots)) or not roots:
            live.update([places[v].root for v in op.inputs])
            ops.append(op)
    return program.with_ops(ops[::-1])

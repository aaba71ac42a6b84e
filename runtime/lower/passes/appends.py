"""Slices of joined arrays are read where they were before: what nobody reads as a whole is not joined."""

from collections.abc import Mapping
from dataclasses import replace

from ....tape.numerics.basic.copy import copy, copy_words
from ....tape.numerics.engine.launch import Words
from ....tape.ops.shape import kernels
from ..array_layout import ArrayLayout
from ..program import LoweredOp, Program, StoragePlace
from .unit_factors import drop_unread


def read_through_appends(program: Program) -> Program:
    """What is cut from joined arrays is read from the one that it comes from."""
    if kernels.append not in program.called:
        return program
    joins = {program.root(op.outputs[0]): op for op in program.ops if op.kernel is kernels.append}
    outputs = set(program.graph.outputs.values())
    cut = {v for v in program.places if program.root(v) in joins and program.root(v) != v and v not in outputs}
    places = {v: _place_behind(program, p, joins) if v in cut else p for v, p in program.places.items()}
    ops = tuple([_from_there(op, places) if op.kernel is copy and op.inputs[0] in cut else op for op in program.ops])
    return drop_unread(replace(program, ops=ops, places=places))


def _from_there(op: LoweredOp, places: Mapping[int, StoragePlace]) -> LoweredOp:
    """A copy whose words, which hold the strides of what it reads, are those of where that lies now."""
    layout = places[op.inputs[0]].layout
    return replace(op, words=copy_words(layout.shape, layout.strides, layout.dtype.itemsize))


def _place_behind(program: Program, place: StoragePlace, joins: Mapping[int, LoweredOp]) -> StoragePlace:
    """Where the elements of a place were before they were joined."""
    while place.root in joins:
        found = _piece(program, place, joins[place.root])
        if found is None:
            break
        place = found
    return place


def _piece(program: Program, place: StoragePlace, join: LoweredOp) -> StoragePlace | None:
    """The place in the array that all elements come from; None if that is both, none, not dense or overwritten."""
    assert isinstance(join.words, Words)
    _, m, n = join.words.values.tolist()
    size, layout = place.layout.dtype.itemsize, place.layout
    if 0 in layout.shape or any(s < 0 for s in layout.strides):
        return None
    pitch, at = (m + n) * size, layout.offset % ((m + n) * size)
    inner = [(k - 1) * s for k, s in zip(layout.shape, layout.strides, strict=True) if s % pitch or k == 1]
    second = at >= m * size
    first, own = (m, n) if second else (0, m)
    if at + sum(inner) + size > (first + own) * size:
        return None
    piece = program.places[join.inputs[second]]
    if not piece.layout.is_dense or piece.root in program.graph.updates:
        return None
    strides = tuple([s if s % pitch else s // pitch * own * size for s in layout.strides])
    offset = piece.layout.offset + layout.offset // pitch * own * size + at - first * size
    return StoragePlace(piece.root, ArrayLayout(layout.shape, strides, offset, layout.dtype))

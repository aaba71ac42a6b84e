"""Operators that find elements, and that read and write at indices."""

from math import prod
from typing import Any

import numpy as np

from ....base.arrays import Array
from ....tape import AnyVar, Var, ops
from .operator import Operator, imports


@imports("TopK")
def _topk(n: Operator) -> Any:
    k = n.attributes["k"] if "k" in n.attributes else n.number(1, 0)
    return ops.topk(n.var(0), int(k), n.get("axis", -1), bool(n.get("largest", 1)))


@imports("Hardmax")
def _hardmax(n: Operator) -> Any:
    """1 where the first of the largest stands; before version 13 along all axes from one on."""
    x = n.var(0)
    sizes, old = tuple(x.shape), n.opset < 13
    axis = n.get("axis", 1 if old else -1) % len(sizes)
    rows = ops.reshape(x, (prod(sizes[:axis]), prod(sizes[axis:]))) if old else ops.swapaxes(x, axis, -1)
    made = ops.one_hot(ops.argmax(rows, -1), tuple(rows.shape)[-1], str(x.dtype))
    return ops.reshape(made, sizes) if old else ops.swapaxes(made, axis, -1)


def _require_reduction(n: Operator) -> bool:
    """Whether elements are added to those that stand there, or set. Raises ImportedModelError for other reductions."""
    given = n.get("reduction", "none")
    if given not in ("none", "add"):
        raise n.error(f"expected elements that are set or added, got reduction {given!r}")
    return bool(given == "add")


def _require_once(n: Operator, rows: Array, size: int) -> None:
    """Raise ImportedModelError for a row of indices, below a size or negative, that names an element twice."""
    places = np.sort(rows % max(size, 1), axis=-1)
    twice = places[..., 1:][places[..., 1:] == places[..., :-1]]
    if twice.size:
        raise n.error(
            f"expected each element to be set once, got index {twice[0]} twice, which the standard leaves undefined"
        )


@imports("ScatterElements", "Scatter")
def _scatter_elements(n: Operator) -> Any:
    """Of indices that name no element twice, unless they are added; which is known of constant ones."""
    x, indices, updates, added = n.var(0), n.var(1), n.var(2), _require_reduction(n)
    sizes = tuple(x.shape)
    axis: int = n.get("axis", 0) % len(sizes)
    if not added and not isinstance(n.inputs[1], Var):
        _require_once(n, np.moveaxis(n.constant(1), axis, -1), sizes[axis])
    shape = tuple(indices.shape)
    rest = tuple([(0, 0) if a == axis else (0, sizes[a] - shape[a]) for a in range(len(sizes))])

    def spread(values: AnyVar) -> AnyVar:
        return ops.pad(ops.scatter_add_along_axis(values, indices, sizes[axis], axis), rest)

    if added:
        return x + spread(updates)
    return ops.where(spread(n.on_tape(np.ones(shape, x.dtype))) > 0.0, spread(updates), x)


def _flat(indices: AnyVar, sizes: tuple[int, ...]) -> AnyVar:
    """The numbers of elements among all of the first axes, from their index along each, which may be negative."""
    total: Any = None
    for place, size in enumerate(sizes):
        index: Any = indices[..., place]
        inside = ops.where(index < 0, index + size, index) * prod(sizes[place + 1 :])
        total = inside if total is None else total + inside
    return total  # type: ignore[no-any-return]


@imports("GatherND")
def _gather_nd(n: Operator) -> Any:
    x, indices = n.var(0), n.var(1)
    batch: int = n.get("batch_dims", 0)
    sizes, shape = tuple(x.shape), tuple(indices.shape)
    named = batch + shape[-1]
    flat: Any = _flat(indices, sizes[batch:named])
    if batch:
        firsts = np.arange(prod(sizes[:batch])) * prod(sizes[batch:named])
        flat = flat + firsts.reshape(sizes[:batch] + (1,) * (len(shape) - 1 - batch))
    return ops.take(ops.reshape(x, (prod(sizes[:named]), *sizes[named:])), flat)


@imports("ScatterND")
def _scatter_nd(n: Operator) -> Any:
    """Of indices that name no element twice, unless they are added; which is known of constant ones."""
    x, indices, updates, added = n.var(0), n.var(1), n.var(2), _require_reduction(n)
    sizes, named = tuple(x.shape), tuple(indices.shape)[-1]
    if not added and not isinstance(n.inputs[1], Var):
        known = n.constant(1).reshape(-1, named) % np.array(sizes[:named])
        flat_places: Array = np.asarray(np.ravel_multi_index(tuple(known.T), sizes[:named]))
        _require_once(n, flat_places, prod(sizes[:named]))
    count, rest = prod(sizes[:named]), sizes[named:]
    flat = ops.reshape(_flat(indices, sizes[:named]), (-1,))
    values = ops.reshape(updates, (*flat.shape, *rest))
    if added:
        return ops.reshape(ops.index_add(ops.reshape(x, (count, *rest)), flat, values), sizes)
    hits = ops.scatter_add(n.on_tape(np.ones(tuple(values.shape), x.dtype)), flat, count)
    set_there = ops.reshape(ops.scatter_add(values, flat, count), sizes)
    return ops.where(ops.reshape(hits, sizes) > 0.0, set_there, x)


@imports("ReverseSequence")
def _reverse_sequence(n: Operator) -> Any:
    x, lengths = n.var(0), n.constant(1)
    time: int = n.get("time_axis", 0)
    batch: int = n.get("batch_axis", 1)
    places, rank = np.arange(tuple(x.shape)[time])[:, None], len(x.shape)
    turned = np.where(places < lengths, lengths - 1 - places, places)
    turned = turned if time < batch else turned.T
    indices = turned.reshape([size if axis in (time, batch) else 1 for axis, size in enumerate(x.shape)])
    return ops.take_along_axis(x, n.on_tape(np.broadcast_to(indices, tuple(x.shape)).copy()), time % rank)

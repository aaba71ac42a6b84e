"""Operators that move elements."""

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ....tape import ops
from ....tape.var.var import shape_of
from .operator import Operator, imports


@imports("Shape")
def _shape(n: Operator) -> Any:
    sizes = tuple(n.var(0).shape)
    return np.asarray(sizes[slice(n.get("start", None), n.get("end", None))], np.int64)


@imports("Size")
def _size(n: Operator) -> Any:
    return np.asarray(prod(n.var(0).shape), np.int64)


@imports("ConstantOfShape", "Range")
def _of_constants(n: Operator) -> Any:
    """Of constants alone they were computed before; this names the input that is none."""
    return [n.constant(place) for place in range(len(n.inputs))]


@imports("Reshape")
def _reshape(n: Operator) -> Any:
    x, given = n.var(0), n.numbers(1)
    assert given is not None, "the standard has it"
    keep = not n.get("allowzero", 0)
    return ops.reshape(x, tuple(x.shape[i] if size == 0 and keep else size for i, size in enumerate(given)))


@imports("Flatten")
def _flatten(n: Operator) -> Any:
    x, axis = n.var(0), n.get("axis", 1)
    sizes = tuple(x.shape)
    before = prod(sizes[: axis if axis >= 0 else len(sizes) + axis])
    return ops.reshape(x, (before, prod(sizes) // before if before else prod(sizes[axis:])))


@imports("Transpose")
def _transpose(n: Operator) -> Any:
    x = n.var(0)
    return ops.permute(x, tuple(n.get("perm", range(len(x.shape))[::-1])))


@imports("Squeeze")
def _squeeze(n: Operator) -> Any:
    x, axes = n.var(0), n.axes()
    sizes = tuple(x.shape)
    gone = {a % len(sizes) for a in axes} if axes is not None else {a for a, size in enumerate(sizes) if size == 1}
    return ops.reshape(x, tuple(size for a, size in enumerate(sizes) if a not in gone))


@imports("Unsqueeze")
def _unsqueeze(n: Operator) -> Any:
    x, axes = n.var(0), n.axes() or ()
    rank = len(x.shape) + len(axes)
    new, sizes = {a % rank for a in axes}, iter(tuple(x.shape))
    return ops.reshape(x, tuple(1 if a in new else next(sizes) for a in range(rank)))


@imports("Concat")
def _concat(n: Operator) -> Any:
    return ops.concat(n.vars(), axis=n.get("axis", 0))


@imports("Split")
def _split(n: Operator) -> Any:
    x, axis, sizes = n.var(0), int(n.get("axis", 0)), n.get("split", None) or n.numbers(1)
    if sizes is None:
        parts, size = int(n.get("num_outputs", n.outputs)), shape_of(x)[axis]
        each = -(-size // parts)
        sizes = tuple(min(each, size - each * place) for place in range(parts))
    ends = np.cumsum([0, *sizes])
    return tuple(ops.narrow(x, int(start), int(end - start), axis) for start, end in pairwise(ends))


@imports("Slice")
def _slice(n: Operator) -> Any:
    x = n.var(0)
    old = "starts" in n.attributes
    starts, ends = (n.get("starts", ()), n.get("ends", ())) if old else (n.numbers(1) or (), n.numbers(2) or ())
    axes = n.get("axes", None) if old else n.numbers(3)
    steps = (None if old else n.numbers(4)) or (1,) * len(starts)
    index = [slice(None)] * len(x.shape)
    for axis, start, end, step in zip(axes or range(len(starts)), starts, ends, steps, strict=True):
        behind = step < 0 and end < -x.shape[axis]
        index[axis] = slice(start, None if behind else end, step)
    return ops.getitem(x, tuple(index))


@imports("Gather")
def _gather(n: Operator) -> Any:
    return ops.take(n.var(0), n.var(1), n.get("axis", 0))


@imports("GatherElements")
def _gather_elements(n: Operator) -> Any:
    return ops.take_along_axis(n.var(0), n.var(1), n.get("axis", 0))


@imports("OneHot", constants=(1, 2))
def _one_hot(n: Operator) -> Any:
    """Of two values at an index of at least 0."""
    values, axis = n.constant(2), n.get("axis", -1)
    made = ops.one_hot(n.var(0), int(n.number(1, 0)), str(values.dtype))
    low, high = values.tolist()
    rank = len(made.shape)
    order = list(range(rank - 1))
    order.insert(axis % rank, rank - 1)
    return ops.permute(made, tuple(order)) * (high - low) + low


@imports("Trilu")
def _trilu(n: Operator) -> Any:
    keep: Any = ops.triu if n.get("upper", 1) else ops.tril
    return keep(n.var(0), int(n.number(1, 0)))


@imports("Expand")
def _expand(n: Operator) -> Any:
    x, sizes = n.var(0), n.numbers(1) or ()
    return ops.broadcast_to(x, np.broadcast_shapes(tuple(x.shape), sizes))


@imports("Pad", constants=(1, 2, 3))
def _pad(n: Operator) -> Any:
    x = n.var(0)
    widths = n.get("pads", None) or n.numbers(1) or ()
    axes = (n.numbers(3) if n.has(3) else None) or tuple(range(len(x.shape)))
    pairs = [(0, 0)] * len(x.shape)
    for place, axis in enumerate(axes):
        pairs[axis] = (widths[place], widths[place + len(axes)])
    return ops.pad(x, tuple(pairs), n.get("value", None) or n.number(2, 0.0), n.get("mode", "constant"))


@imports("DepthToSpace")
def _depth_to_space(n: Operator) -> Any:
    x, size = n.var(0), n.attributes["blocksize"]
    b, c, h, w = x.shape
    if n.get("mode", "DCR") == "DCR":
        parts = ops.permute(ops.reshape(x, (b, size, size, c // size**2, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        parts = ops.permute(ops.reshape(x, (b, c // size**2, size, size, h, w)), (0, 1, 4, 2, 5, 3))
    return ops.reshape(parts, (b, c // size**2, h * size, w * size))


@imports("SpaceToDepth")
def _space_to_depth(n: Operator) -> Any:
    x, size = n.var(0), n.attributes["blocksize"]
    b, c, h, w = x.shape
    order = (0, 3, 5, 1, 2, 4) if n.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    parts = ops.permute(ops.reshape(x, (b, c, h // size, size, w // size, size)), order)
    return ops.reshape(parts, (b, c * size**2, h // size, w // size))


@imports("Tile")
def _tile(n: Operator) -> Any:
    return ops.tile(n.var(0), n.numbers(1) or ())


@imports("EyeLike")
def _eye_like(n: Operator) -> Any:
    x, kinds = n.var(0), {1: np.float32, 7: np.int64, 9: np.bool_, 11: np.float64}
    kind = n.get("dtype", None)
    if kind is not None and kind not in kinds:
        raise n.error("expected ones of float32, float64, int64 or bool, got those of another type")
    rows, columns = tuple(x.shape)
    return np.eye(rows, columns, n.get("k", 0), np.dtype(x.dtype if kind is None else kinds[kind]))

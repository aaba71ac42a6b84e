"""Rows of ops that move elements: shapes, slices, indices, joining."""

from typing import Any

import numpy as np

from dgrr.tape import ops

from .row import Arrays, Attrs, Draw, Row


def reshaped(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape()
    order = draw.one_of(tuple(reversed(shape)), (-1, *shape[:1]), (-1,), int(np.prod(shape)))
    return {"x": draw.normal(*shape)}, {"shape": order}


def flattened(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    return {"x": draw.normal(*shape)}, {"start_axis": draw.integer(-len(shape), len(shape) - 1)}


def permuted(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape()
    axes = tuple(int(axis) for axis in draw.rng.permutation(len(shape)))
    return {"x": draw.normal(*shape)}, {"axes": axes}


def swapped(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    return {"x": draw.normal(*shape)}, dict(zip(("axis1", "axis2"), _axes(draw, len(shape), 2), strict=True))


def _axes(draw: Draw, rank: int, count: int) -> tuple[int, ...]:
    return draw.integers(count, -rank, rank - 1)


def broadcast(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape()
    kept = shape[draw.integer(0, len(shape)) :]
    return {"x": draw.normal(*[draw.one_of(1, n) for n in kept])}, {"shape": shape}


def indexed(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    index: list[Any] = [_one_index(draw, n) for n in shape[: draw.integer(1, len(shape))]]
    if draw.one_of(True, False):
        index.insert(draw.integer(0, len(index)), None)
    if len(index) < len(shape) and draw.one_of(True, False):
        index.insert(0, ...)
        index = [..., *[slice(None)] * (len(shape) - len(index) + 1 + index.count(None)), *index[1:]][: len(index)]
    return {"x": draw.normal(*shape)}, {"index": tuple(index)}


def _one_index(draw: Draw, n: int) -> Any:
    start, stop = sorted(draw.integers(2, 0, n))
    return draw.one_of(draw.integer(-n, n - 1), slice(start, stop, draw.integer(1, 3)), slice(None))


def narrowed(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    (axis,) = _axes(draw, len(shape), 1)
    start = draw.integer(0, shape[axis])
    return {"x": draw.normal(*shape)}, {"start": start, "length": draw.integer(0, shape[axis] - start), "axis": axis}


def row_of(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((2, 2))
    return {"x": draw.normal(*shape)}, {"i": draw.integer(-shape[0], shape[0] - 1)}


def joined(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    (axis,) = _axes(draw, len(shape), 1)
    sizes = [list(shape) for _ in "abc"]
    for size in sizes:
        size[axis] = draw.integer(0, 4)
    return {name: draw.normal(*size) for name, size in zip("abc", sizes, strict=True)}, {"axis": axis}


def joined_pair(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, attrs = joined(draw)
    del arrays["c"]
    return arrays, attrs


def stacked(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape()
    return {name: draw.normal(*shape) for name in "abc"}, {"axis": _axes(draw, len(shape) + 1, 1)[0]}


def parted(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = list(draw.shape((1, 4)))
    (axis,) = _axes(draw, len(shape), 1)
    parts = list(draw.integers(draw.integer(1, 3), 0, 3))
    shape[axis] = sum(parts)
    return {"x": draw.normal(*shape)}, {"parts": parts, "axis": axis}


def taken(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    (axis,) = _axes(draw, len(shape), 1)
    n = shape[axis]
    return {"x": draw.normal(*shape), "indices": draw.indices(-n, n, *draw.shape((0, 2)))}, {"axis": axis}


def taken_or_zero(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    (axis,) = _axes(draw, len(shape), 1)
    return {"x": draw.normal(*shape), "indices": draw.indices(-2, shape[axis] + 2, draw.integer(0, 6))}, {"axis": axis}


def looked_up(draw: Draw) -> tuple[Arrays, Attrs]:
    rows, columns = draw.shape((2, 2))
    return {"weight": draw.normal(rows, columns), "indices": draw.indices(0, rows, *draw.shape((0, 3)))}, {}


def added_at(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    (axis,) = _axes(draw, len(shape), 1)
    count = draw.integer(0, 6)
    values = list(shape)
    values[axis] = count
    indices = draw.indices(0, shape[axis], count)
    return {"x": draw.normal(*shape), "indices": indices, "values": draw.normal(*values)}, {"axis": axis}


def scattered(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, attrs = added_at(draw)
    x = arrays.pop("x")
    assert x is not None
    return arrays, {**attrs, "size": x.shape[attrs["axis"]]}


def take(t: Any, x: Any, indices: Any, axis: int) -> Any:
    return x[(slice(None),) * (axis % x.ndim) + (indices,)]


def take_or_zero(t: Any, x: Any, indices: Any, axis: int) -> Any:
    n = x.shape[axis]
    zero = t.zeros_like(x.narrow(axis, 0, 1))
    inside = (indices >= 0) & (indices < n)
    return take(t, t.cat([x, zero], axis), t.where(inside, indices, n), axis)


def scatter_add(t: Any, values: Any, indices: Any, size: int, axis: int) -> Any:
    shape = list(values.shape)
    shape[axis] = size
    return t.zeros(shape, dtype=values.dtype).index_add(axis, indices, values)


ROWS = [
    Row("reshape", lambda t, x, shape: t.reshape(x, shape if isinstance(shape, tuple) else (shape,)), reshaped),
    Row("flatten", lambda t, x, start_axis: t.flatten(x, start_axis), flattened),
    Row("transpose2d", lambda t, x: x.T, lambda draw: ({"x": draw.normal(*draw.shape((2, 2)))}, {})),
    Row("permute", lambda t, x, axes: t.permute(x, axes), permuted),
    Row("swapaxes", lambda t, x, axis1, axis2: t.swapaxes(x, axis1, axis2), swapped),
    Row("broadcast_to", lambda t, x, shape: t.broadcast_to(x, shape), broadcast),
    Row("getitem", lambda t, x, index: x[index], indexed, "steps of slices may be negative"),
    Row("narrow", lambda t, x, start, length, axis: t.narrow(x, axis, start, length), narrowed),
    Row("gather_row", lambda t, x, i: t.select(x, 0, i), row_of),
    Row("append", lambda t, a, b, axis: t.cat([a, b], axis), joined_pair),
    Row("concat", lambda t, a, b, c, axis: t.cat([a, b, c], axis), joined,
        ours=lambda a, b, c, axis: ops.concat([a, b, c], axis)),
    Row("stack", lambda t, a, b, c, axis: t.stack([a, b, c], axis), stacked,
        ours=lambda a, b, c, axis: ops.stack([a, b, c], axis)),
    Row("split", lambda t, x, parts, axis: t.split(x, parts, axis), parted),
    Row("take", take, taken),
    Row("take_or_zero", take_or_zero, taken_or_zero),
    Row("embedding", lambda t, weight, indices: t.nn.functional.embedding(indices, weight), looked_up),
    Row("index_add", lambda t, x, indices, values, axis: t.index_add(x, axis, indices, values), added_at),
    Row("scatter_add", scatter_add, scattered),
]  # fmt: skip

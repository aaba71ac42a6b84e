"""Ops that move elements and compute nothing."""

from types import EllipsisType
from typing import Any, cast

import numpy as np

from ....tape.ops.shape.padding import sources
from .graph import OpCall, exports

FAR = (1 << 63) - 1
"""Behind the end of every axis; its negative before the beginning."""


@exports("reshape", "flatten")
def _reshape(c: OpCall) -> str:
    return c("Reshape", c.x, c.sizes(*c.out.shape), allowzero=1)


@exports("broadcast_to")
def _broadcast_to(c: OpCall) -> str:
    return c("Expand", c.x, c.sizes(*c.out.shape))


@exports("transpose2d")
def _transpose2d(c: OpCall) -> str:
    return c("Transpose", c.x, perm=[1, 0])


@exports("permute")
def _permute(c: OpCall) -> str:
    order = [axis % len(c.shape) for axis in c.attrs["axes"]]
    return c("Transpose", c.x, perm=order) if order else c("Identity", c.x)


@exports("swapaxes")
def _swapaxes(c: OpCall) -> str:
    rank = len(c.shape)
    order = list(range(rank))
    first, second = c.attrs["axis1"] % rank, c.attrs["axis2"] % rank
    order[first], order[second] = second, first
    return c("Transpose", c.x, perm=order)


@exports("narrow")
def _narrow(c: OpCall) -> str:
    axis = int(c.attrs["axis"]) % len(c.shape)
    start = int(c.attrs["start"])
    start += c.shape[axis] if start < 0 else 0
    return c("Slice", c.x, c.sizes(start), c.sizes(start + c.attrs["length"]), c.sizes(axis))


@exports("gather_row")
def _gather_row(c: OpCall) -> str:
    row = c("Slice", c.x, c.sizes(c.attrs["i"]), c.sizes(c.attrs["i"] + 1 or FAR), c.sizes(0))
    return c("Reshape", row, c.sizes(*c.out.shape), allowzero=1)


@exports("getitem")
def _getitem(c: OpCall) -> str:
    """A slice along every axis that is named; axes of one index, and new ones, are a matter of the shape."""
    starts, ends, axes, steps = list[int](), list[int](), list[int](), list[int]()
    for axis, part in enumerate(_parts(c.attrs["index"], len(c.shape))):
        if part == slice(None):
            continue
        if isinstance(part, int):
            start = part % c.shape[axis]
            part = slice(start, start + 1, 1)
        start, stop, step = part.indices(c.shape[axis])
        starts.append(start)
        ends.append(stop if stop >= 0 else -FAR)
        axes.append(axis)
        steps.append(step)
    made = c("Slice", c.x, c.sizes(*starts), c.sizes(*ends), c.sizes(*axes), c.sizes(*steps)) if axes else c.x
    return c("Reshape", made, c.sizes(*c.out.shape), allowzero=1)


def _parts(index: Any, rank: int) -> list[Any]:
    """One int or slice for each axis."""
    parts: Any = cast(Any, index) if isinstance(index, tuple) else (index,)
    given: list[Any] = [part for part in parts if part is not None]
    dots = next((i for i, part in enumerate(given) if isinstance(part, EllipsisType)), len(given))
    named = [part for part in given if not isinstance(part, EllipsisType)]
    missing = [slice(None)] * (rank - len(named))
    return [*named[:dots], *missing, *named[dots:]]


@exports("append")
def _append(c: OpCall) -> str:
    return c("Concat", c.x, c.input(1), axis=c.attrs["axis"])


@exports("pad")
def _pad(c: OpCall) -> str:
    """By Pad, but along axes that it leaves open, where each place names its element."""
    if not c.shape:
        return c("Identity", c.x)
    widths, mode = c.attrs["widths"], c.attrs["mode"]
    pairs = [(widths, widths)] * len(c.shape) if isinstance(widths, int) else widths
    gathered = mode == "symmetric" or 0 in c.shape
    made, plain = c.x, list[int]()
    for axis, (n, pair) in enumerate(zip(c.shape, pairs, strict=True)):
        if mode == "constant" or (not gathered and 0 <= min(pair) <= max(pair) < n):
            plain += [axis] if any(pair) else []
        elif any(pair):
            made = c("Gather", made, c.sizes(*sources(n, pair[0], pair[1], mode)), axis=axis)
    before, after = ([pairs[axis][end] for axis in plain] for end in (0, 1))
    if not plain:
        return c("Identity", made)
    return c("Pad", made, c.sizes(*before, *after), c.number(c.attrs["value"]), c.sizes(*plain), mode=mode)


@exports("take", "embedding")
def _take(c: OpCall) -> str:
    return c("Gather", c.x, c.input(1), axis=c.attrs.get("axis", 0))


@exports("take_or_zero")
def _take_or_zero(c: OpCall) -> str:
    """Indices outside become 0, and what is found there +0."""
    indices = c.input(1)
    axis: int = c.attrs.get("axis", 0) % len(c.shape)
    low, high = (c.graph.constant(np.asarray(value)) for value in (0, c.shape[axis]))
    inside = c("And", c("GreaterOrEqual", indices, low), c("Less", indices, high))
    if not c.shape[axis]:
        return c("Expand", c.number(0.0), c.sizes(*c.out.shape))
    found = c("Gather", c.x, c("Where", inside, indices, low), axis=axis)
    rank = len(c.spec(1).shape)
    wide = c.sizes(*[1] * axis, *c.spec(1).shape, *[1] * (len(c.out.shape) - axis - rank))
    return c("Where", c("Reshape", inside, wide, allowzero=1), found, c.number(0.0))


@exports("take_along_axis")
def _take_along_axis(c: OpCall) -> str:
    return c("GatherElements", c.x, c.input(1), axis=c.attrs["axis"])


@exports("scatter_add_along_axis")
def _scatter_add_along_axis(c: OpCall) -> str:
    zeros = c.graph.constant(np.zeros(c.out.shape, c.out.dtype))
    return c("ScatterElements", zeros, c.input(1), c.x, axis=c.attrs["axis"], reduction="add")


@exports("one_hot")
def _one_hot(c: OpCall) -> str:
    depth, values = c.sizes(c.attrs["num_classes"]), c.graph.constant(np.asarray([0, 1], c.out.dtype))
    made = c("OneHot", c("Reshape", c.x, c.sizes(-1)), depth, values, axis=-1)
    return c("Reshape", made, c.sizes(*c.out.shape), allowzero=1)

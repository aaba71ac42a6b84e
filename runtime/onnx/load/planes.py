"""Planes read at places of a grid, and put together of windows."""

from math import prod
from typing import Any, cast

from ....tape import ops
from .operator import Operator, imports

MODES = {"linear": "bilinear", "cubic": "bicubic"}
"""Names since version 20, and those before."""


@imports("GridSample")
def _grid_sample(n: Operator) -> Any:
    given, padding = str(n.get("mode", "linear")), n.get("padding_mode", "zeros")
    mode, corners = MODES.get(given, given), bool(n.get("align_corners", 0))
    x, grid = n.var(0), n.var(1)
    if len(x.shape) == 4:
        return cast(Any, ops.grid_sample(x, grid, mode, padding, corners))
    mode = "trilinear" if mode == "bilinear" else mode
    return cast(Any, ops.grid_sample3d(x, grid, mode, padding, corners))


@imports("AffineGrid")
def _affine_grid(n: Operator) -> Any:
    sizes = n.numbers(1)
    assert sizes is not None, "the standard has it"
    return ops.affine_grid(n.var(0), sizes[2:], bool(n.get("align_corners", 0)))


@imports("MaxUnpool")
def _max_unpool(n: Operator) -> Any:
    """Indices count through all planes."""
    x, kernel = n.var(0), n.attributes["kernel_shape"]
    axes = len(kernel)
    strides, pads = n.get("strides", (1,) * axes), n.get("pads", (0,) * 2 * axes)
    sizes = tuple(x.shape)
    planes = [
        (size - 1) * step - pads[axis] - pads[axes + axis] + reach
        for axis, (size, step, reach) in enumerate(zip(sizes[2:], strides, kernel, strict=True))
    ]
    shape = (*sizes[:2], *planes)
    spread = ops.scatter_add(ops.reshape(x, (-1,)), ops.reshape(n.var(1), (-1,)), prod(shape))
    made, wanted = ops.reshape(spread, shape), n.numbers(2)
    if wanted is None:
        return made
    return ops.pad(made, tuple([(0, large - small) for large, small in zip(wanted, shape, strict=True)]))


@imports("Col2Im")
def _col2im(n: Operator) -> Any:
    x, plane, kernel = n.var(0), n.numbers(1), n.numbers(2)
    assert plane is not None, "the standard has it"
    assert kernel is not None, "the standard has it"
    axes = len(kernel)
    pads = n.get("pads", (0,) * 2 * axes)
    wide = tuple([size + pads[a] + pads[axes + a] for a, size in enumerate(plane)])
    made = ops.fold(x, wide, kernel, tuple(n.get("dilations", (1,) * axes)), 0, tuple(n.get("strides", (1,) * axes)))
    inside = tuple([slice(pads[a], pads[a] + size) for a, size in enumerate(plane)])
    return ops.getitem(made, (..., *inside))

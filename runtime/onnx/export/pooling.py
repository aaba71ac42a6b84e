"""Pools, and planes of other sizes."""

from collections.abc import Sequence
from math import prod
from typing import Any

from ....tape.ops.pooling.rules import sliding_rules
from .graph import ExportError, OpCall, exports


def _in_planes(c: OpCall, axes: int, kind: str, *more: str, **attributes: Any) -> str:
    """The operator on (samples, 1, *plane)."""
    planes = prod(c.shape[:-axes])
    flat = c("Reshape", c.x, c.sizes(planes, 1, *c.shape[-axes:]), allowzero=1)
    return c("Reshape", c(kind, flat, *more, **attributes), c.sizes(*c.out.shape), allowzero=1)


def _windows(c: OpCall) -> dict[str, Any]:
    named = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    rules: Any = sliding_rules("onnx.export", **{name: c.attrs[name] for name in named if name in c.attrs})
    return {
        "kernel_shape": [rule[0] for rule in rules],
        "strides": [rule[1] for rule in rules],
        "pads": [rule[2] for rule in rules] + [rule[4] if len(rule) > 4 else rule[2] for rule in rules],
        "dilations": [rule[3] for rule in rules],
        "ceil_mode": int(c.attrs["ceil_mode"]),
    }


@exports("max_pool")
def _max_pool(c: OpCall) -> str:
    return _in_planes(c, len(c.attrs["kernel_size"]), "MaxPool", **_windows(c))


@exports("avg_pool")
def _avg_pool(c: OpCall) -> str:
    counted = int(c.attrs["count_include_pad"])
    return _in_planes(c, len(c.attrs["kernel_size"]), "AveragePool", **_windows(c), count_include_pad=counted)


def _adapted(c: OpCall) -> dict[str, Any]:
    """Windows of one size. Raises ExportError where they are of several."""
    wanted: Sequence[int] = c.attrs["output_size"]
    sizes = c.shape[-len(wanted) :]
    if any(size % out for size, out in zip(sizes, wanted, strict=True)):
        raise ExportError(
            f"sizes {sizes} are no multiples of {tuple(wanted)}, and windows of several sizes are not known"
        )
    kernel = [size // out for size, out in zip(sizes, wanted, strict=True)]
    return {"kernel_shape": kernel, "strides": kernel}


@exports("adaptive_avg_pool")
def _adaptive_avg_pool(c: OpCall) -> str:
    return _in_planes(c, len(c.attrs["output_size"]), "AveragePool", **_adapted(c))


@exports("adaptive_max_pool")
def _adaptive_max_pool(c: OpCall) -> str:
    return _in_planes(c, len(c.attrs["output_size"]), "MaxPool", **_adapted(c))


@exports("upsample_nearest")
def _upsample_nearest(c: OpCall) -> str:
    rule = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return c("Resize", c.x, "", "", c.sizes(*c.out.shape), **rule)


@exports("upsample_bilinear")
def _upsample_bilinear(c: OpCall) -> str:
    places = "align_corners" if c.attrs["align_corners"] else "half_pixel"
    return c("Resize", c.x, "", "", c.sizes(*c.out.shape), mode="linear", coordinate_transformation_mode=places)


@exports("interpolate")
def _interpolate(c: OpCall) -> str:
    """To a size, by the modes that both have. A factor leaves other places to the standard, which rounds them."""
    mode, linear = c.attrs["mode"], ("linear", "bilinear", "trilinear")
    if c.attrs["size"] is None or c.attrs["antialias"] or mode not in ("nearest", "bicubic", *linear):
        raise ExportError(f"mode {mode!r} to a size, without a filter, is what is known")
    if mode == "nearest":
        return _upsample_nearest(c)
    places = "align_corners" if c.attrs["align_corners"] else "half_pixel"
    rule = {"mode": "linear" if mode in linear else "cubic", "coordinate_transformation_mode": places}
    leading = len(c.shape) - len(c.attrs["size"])
    flat = c("Reshape", c.x, c.sizes(1, prod(c.shape[:leading]), *c.shape[leading:]), allowzero=1)
    wanted = c.sizes(1, prod(c.shape[:leading]), *c.out.shape[leading:])
    return c("Reshape", c("Resize", flat, "", "", wanted, **rule), c.sizes(*c.out.shape), allowzero=1)

"""Pools, and planes of other sizes."""

from collections.abc import Sequence
from math import prod
from typing import Any

from ....tape.ops.pooling.rules import sliding_rules
from .graph import Call, ExportError, exports


def _in_planes(c: Call, axes: int, kind: str, *more: str, **attributes: Any) -> str:
    """The operator on (samples, 1, *plane)."""
    planes = prod(c.shape[:-axes])
    flat = c("Reshape", c.x, c.sizes(planes, 1, *c.shape[-axes:]), allowzero=1)
    return c("Reshape", c(kind, flat, *more, **attributes), c.sizes(*c.out.shape), allowzero=1)


def _windows(c: Call) -> dict[str, Any]:
    given = {name: c.attrs[name] for name in ("kernel_size", "stride", "padding", "dilation") if name in c.attrs}
    kernel, strides, padding, dilations = zip(*sliding_rules("onnx.export", **given), strict=True)
    return {"kernel_shape": kernel, "strides": strides, "pads": [*padding, *padding], "dilations": dilations}


@exports("max_pool")
def _max_pool(c: Call) -> str:
    return _in_planes(c, len(c.attrs["kernel_size"]), "MaxPool", **_windows(c))


@exports("avg_pool")
def _avg_pool(c: Call) -> str:
    counted = int(c.attrs["count_include_pad"])
    return _in_planes(c, len(c.attrs["kernel_size"]), "AveragePool", **_windows(c), count_include_pad=counted)


def _adapted(c: Call) -> dict[str, Any]:
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
def _adaptive_avg_pool(c: Call) -> str:
    return _in_planes(c, len(c.attrs["output_size"]), "AveragePool", **_adapted(c))


@exports("adaptive_max_pool")
def _adaptive_max_pool(c: Call) -> str:
    return _in_planes(c, len(c.attrs["output_size"]), "MaxPool", **_adapted(c))


@exports("upsample_nearest")
def _upsample_nearest(c: Call) -> str:
    rule = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return c("Resize", c.x, "", "", c.sizes(*c.out.shape), **rule)


@exports("upsample_bilinear")
def _upsample_bilinear(c: Call) -> str:
    places = "align_corners" if c.attrs["align_corners"] else "half_pixel"
    return c("Resize", c.x, "", "", c.sizes(*c.out.shape), mode="linear", coordinate_transformation_mode=places)

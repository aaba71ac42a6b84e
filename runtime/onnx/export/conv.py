"""Convolutions."""

from collections.abc import Sequence
from math import prod
from typing import Any

from ....tape.ops.conv.sizes import Window, window
from .graph import OpCall, exports


def _attributes(moved: Window) -> dict[str, Any]:
    return {
        "strides": list(moved.stride),
        "dilations": list(moved.dilation),
        "pads": [*moved.low, *moved.high],
        "group": moved.groups,
    }


def _applied(c: OpCall, kind: str, attributes: dict[str, Any]) -> str:
    """The operator on samples along one axis, as many axes as the op's may have."""
    axes = len(c.spec(1).shape) - 2
    rest: Sequence[str] = [name for name in c.inputs[1:] if name is not None]
    if len(c.shape) == axes + 2:
        return c(kind, c.x, *rest, **attributes)
    samples = prod(c.shape[: -axes - 1])
    flat = c("Reshape", c.x, c.sizes(samples, *c.shape[-axes - 1 :]), allowzero=1)
    return c("Reshape", c(kind, flat, *rest, **attributes), c.sizes(*c.out.shape), allowzero=1)


@exports("conv")
def _conv(c: OpCall) -> str:
    given = {name: c.attrs[name] for name in ("stride", "padding", "dilation", "groups")}
    return _applied(c, "Conv", _attributes(window("onnx.export", c.spec(1), **given)))


@exports("conv_transpose")
def _conv_transpose(c: OpCall) -> str:
    given = {name: c.attrs[name] for name in ("stride", "padding", "dilation", "groups")}
    more, axes = c.attrs["output_padding"], len(c.spec(1).shape) - 2
    attributes = _attributes(window("onnx.export", c.spec(1), **given))
    attributes["output_padding"] = [more] * axes if isinstance(more, int) else list(more)
    return _applied(c, "ConvTranspose", attributes)

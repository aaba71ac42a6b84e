"""Attributes and sizes of convolutions: one number for each spatial axis, and what does not fit.

The names and the formulas are those of ``torch.nn.functional``.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...errors import ShapeError
from ...numerics.sizes import Sizes
from ...record.kinds.values import Given, PerAxis, at_least, each
from ...record.types import like
from ...values.per_axis import PerSide, per_side
from ...values.spec import Spec

Padding = PerSide | str


class Window(NamedTuple):
    """How a kernel moves over an input: for each axis its size, its stride, padding before and after, dilation."""

    kernel: Sizes
    stride: Sizes
    low: Sizes
    high: Sizes
    dilation: Sizes
    groups: int

    @property
    def reach(self) -> Sizes:
        """Cells from the first tap of the kernel to the last."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    def out(self, size: Sizes) -> Sizes:
        """How many positions the kernel has in an input."""
        ends = zip(size, self.low, self.high, self.reach, self.stride, strict=True)
        return tuple((n + low + high - reach) // stride + 1 for n, low, high, reach, stride in ends)

    def spread(self, positions: Sizes, more: Sizes) -> Sizes:
        """The sizes of an input in which the kernel has so many positions, and of so many cells more."""
        ends = zip(positions, self.low, self.high, self.reach, self.stride, more, strict=True)
        return tuple((n - 1) * stride - low - high + reach + extra for n, low, high, reach, stride, extra in ends)

    def lead(self, shape: Sizes) -> Sizes:
        """The axes of an input or output before its channels."""
        return shape[: -len(self.kernel) - 1]

    def spatial(self, shape: Sizes) -> Sizes:
        """The axes of an input or output behind its channels."""
        return shape[-len(self.kernel) :]


def fault(op: str, argument: str, expected: str, got: object) -> ShapeError:
    """The error for an argument that does not fit."""
    return ShapeError(f"{op}: argument {argument!r}: expected {expected}, got {got}")


def _axes(given: Given) -> int:
    return len(given["kernel"] if "kernel" in given else given["weight"][2:])


KINDS = {
    "stride": PerAxis(1, _axes),
    "padding": PerAxis(0, _axes, sides=True),
    "dilation": PerAxis(1, _axes),
    "groups": at_least(1, "a whole number of at least", ShapeError),
}
SIZES = PerAxis(0, _axes)


def window(op: str, weight: Spec, stride: Any, padding: Any, dilation: Any, groups: int) -> Window:
    """The window of a weight (channels, channels, *kernel) and an op's attributes. Raises ShapeError."""
    if weight.rank < 3 or min(weight.shape[2:]) < 1:
        expected = "two axes of channels, then one or more of a kernel, of at least 1"
        raise fault(op, "weight", expected, f"shape {weight.shape}")
    if weight.shape[0] % groups:
        raise fault(op, "weight", f"a number of channels that {groups} groups divide", f"shape {weight.shape}")
    kernel, axes = weight.shape[2:], weight.rank - 2
    steps, apart = each(stride, axes), each(dilation, axes)
    low, high = _borders(op, padding, steps, [d * (k - 1) for k, d in zip(kernel, apart, strict=True)])
    return Window(kernel, steps, low, high, apart, groups)


def _borders(op: str, padding: Any, stride: Sizes, reach: Sequence[int]) -> tuple[Sizes, Sizes]:
    """Padding before and after each axis; of "same" an odd cell stands after it."""
    if padding == "same":
        if max(stride) > 1:
            raise fault(op, "padding", "numbers where the stride is not 1", "'same'")
        return tuple(n // 2 for n in reach), tuple(n - n // 2 for n in reach)
    if padding == "valid":
        return (0,) * len(reach), (0,) * len(reach)
    if isinstance(padding, str):
        raise fault(op, "padding", "'same', 'valid' or numbers", repr(padding))
    pairs = per_side(padding, len(reach)) or ()
    return tuple([low for low, _ in pairs]), tuple([high for _, high in pairs])


def _require_channels(op: str, argument: str, x: Spec, count: int, moved: Window) -> None:
    axes = len(moved.kernel)
    if x.rank <= axes or x.shape[-axes - 1] != count:
        space = ", ".join(["*Bs", str(count), *(f"S{a + 1}" for a in range(axes))])
        raise fault(op, argument, f"shape ({space}) to fit weight and groups", x.shape)


def _require_bias(op: str, bias: Spec | None, count: int) -> None:
    if bias is not None and bias.shape != (count,):
        raise fault(op, "bias", f"shape ({count},)", bias.shape)


def _require_result(op: str, size: Sizes, result: Sizes) -> None:
    if min(result) < 1:
        raise fault(op, "x", f"spatial sizes that leave a result of at least 1, not of {result}", size)


def _require_positions(op: str, source: str, size: Sizes, positions: Sizes, moved: Window) -> None:
    """Fewer positions than the kernel has are those of a conv_transpose with much output_padding."""
    most = moved.out(size)
    if any(n > limit for n, limit in zip(positions, most, strict=True)):
        raise fault(op, "cotangent", f"at most {most} positions for {source} of {size}", positions)


# ------------------------------------------------------------------ shapes of results


def infer_conv(x: Spec, weight: Spec, bias: Spec | None, **attrs: Any) -> Spec:
    """The result of conv. Raises ShapeError."""
    moved = window("conv", weight, **attrs)
    _require_channels("conv", "x", x, weight.shape[1] * moved.groups, moved)
    _require_bias("conv", bias, weight.shape[0])
    out = moved.out(moved.spatial(x.shape))
    _require_result("conv", moved.spatial(x.shape), out)
    return like(x, (*moved.lead(x.shape), weight.shape[0], *out))


def transposed(x: Spec, weight: Spec, output_padding: Any, **attrs: Any) -> tuple[Window, Sizes]:
    """The window of conv_transpose and the spatial sizes of its result. Raises ShapeError."""
    name = "conv_transpose"
    moved = window(name, weight, **attrs)
    more = each(output_padding, len(moved.kernel))
    if any(n >= max(s, d) for n, s, d in zip(more, moved.stride, moved.dilation, strict=True)):
        raise fault(name, "output_padding", "less than the stride or the dilation", more)
    _require_channels(name, "x", x, weight.shape[0], moved)
    size = moved.spread(moved.spatial(x.shape), more)
    _require_result(name, moved.spatial(x.shape), size)
    return moved, size


def infer_conv_transpose(x: Spec, weight: Spec, bias: Spec | None, **attrs: Any) -> Spec:
    """The result of conv_transpose. Raises ShapeError."""
    moved, size = transposed(x, weight, **attrs)
    outputs = weight.shape[1] * moved.groups
    _require_bias("conv_transpose", bias, outputs)
    return like(x, (*moved.lead(x.shape), outputs, *size))


def infer_input_grad(cotangent: Spec, weight: Spec, size: Sizes, **attrs: Any) -> Spec:
    """The result of conv_input_grad. Raises ShapeError."""
    name = "conv_input_grad"
    moved = window(name, weight, **attrs)
    _require_channels(name, "cotangent", cotangent, weight.shape[0], moved)
    _require_positions(name, "a size", size, moved.spatial(cotangent.shape), moved)
    return like(cotangent, (*moved.lead(cotangent.shape), weight.shape[1] * moved.groups, *size))


def weight_window(x: Spec, cotangent: Spec, kernel: Sizes, **attrs: Any) -> Window:
    """The window of a weight of which only the gradient will be there. Raises ShapeError."""
    name, channel = "conv_weight_grad", -len(kernel) - 1
    if min(x.rank, cotangent.rank) < -channel:
        raise fault(name, "kernel", f"fewer axes than x {x.shape} and cotangent {cotangent.shape} have", kernel)
    return window(name, Spec((cotangent.shape[channel], x.shape[channel], *kernel), x.dtype), **attrs)


def infer_weight_grad(x: Spec, cotangent: Spec, kernel: Sizes, **attrs: Any) -> Spec:
    """The result of conv_weight_grad. Raises ShapeError."""
    name, channel, moved = "conv_weight_grad", -len(kernel) - 1, weight_window(x, cotangent, kernel, **attrs)
    lead, groups = moved.lead(cotangent.shape), moved.groups
    if moved.lead(x.shape) != lead or x.shape[channel] % groups:
        expected = f"leading axes {lead} and a number of channels that {groups} groups divide"
        raise fault(name, "x", expected, f"shape {x.shape}")
    _require_positions(name, "x", moved.spatial(x.shape), moved.spatial(cotangent.shape), moved)
    return like(x, (cotangent.shape[channel], x.shape[channel] // groups, *kernel))

"""Convolutions as kernel calls: the lowering of `conv`, of its adjoints, and of the transposed convolution."""

from math import prod

from ...numerics.sizes import Sizes
from ...record.lowering import Slot, StridedStep, call, permuted, reshaped, view
from ...values.spec import Spec
from .kernels.axis import PlanAxis, adjoint, forward
from .kernels.forward import convolve, interleave, pack_weights
from .kernels.plan import ConvPlan
from .kernels.weight_grad import convolve_weights
from .kernels.words import Workspace, interleave_words, weight_words, words
from .sizes import Window


def lower_forward(x: Slot, weight: Slot, bias: Slot | None, window: Window) -> Slot:
    """The convolution of ``x``."""
    axes = _forward_axes(window, window.spatial(x.shape), window.out(window.spatial(x.shape)))
    y, _ = _convolved(x, weight, bias, axes, window.groups, swapped=False)
    return _shaped(y, (*window.lead(x.shape), *y.shape[1:2], *(axis.results for axis in axes)))


def lower_adjoint(g: Slot, weight: Slot, bias: Slot | None, window: Window, size: Sizes) -> Slot:
    """The adjoint by an input of ``size``."""
    source = window.spatial(g.shape)
    axes = tuple(map(adjoint, source, size, window.kernel, window.stride, window.low, window.dilation))
    y, plan = _convolved(g, weight, bias, axes, window.groups, swapped=True)
    if max(window.stride) > 1:
        y = call(interleave, [y], (*y.shape[:2], *size), *interleave_words(plan, size))
    return _shaped(y, (*window.lead(g.shape), y.shape[1], *size))


def lower_weight(x: Slot, g: Slot, window: Window) -> Slot:
    """The adjoint by the weight; the kernel has the outputs last."""
    axes, groups = _forward_axes(window, window.spatial(x.shape), window.spatial(g.shape)), window.groups
    source, cotangents = _joined(x, len(axes)), _joined(g, len(axes))
    channels, outputs = source.shape[1] // groups, cotangents.shape[1] // groups
    plan = ConvPlan(source.shape[0], groups, channels, outputs, axes, x.dtype.itemsize)
    out = Spec((groups, plan.depth, outputs), x.dtype)
    layout = Workspace(words(plan), plan.gradient_bytes, plan.flops)
    y = Slot(out, StridedStep(convolve_weights, (source, cotangents), out, layout, strided=()))
    y, shape = permuted(y, (0, 2, 1)), (groups * outputs, channels, *window.kernel)
    return reshaped(y, shape) if groups > 1 else view("reshape", y, shape, lambda a: a.reshape(shape))


def _forward_axes(window: Window, size: Sizes, out: Sizes) -> tuple[PlanAxis, ...]:
    return tuple(map(forward, size, out, window.kernel, window.stride, window.low, window.dilation))


def _joined(x: Slot, axes: int) -> Slot:
    """``x`` with its leading axes joined into one."""
    return _shaped(x, (prod(x.shape[: -axes - 1]), *x.shape[-axes - 1 :]))


def _shaped(x: Slot, shape: Sizes) -> Slot:
    """``x`` under another shape; ``x`` itself if it has it, since even a view costs an eager call a microsecond."""
    return x if x.shape == shape else reshaped(x, shape)


def _convolved(
    x: Slot, weight: Slot, bias: Slot | None, axes: tuple[PlanAxis, ...], groups: int, *, swapped: bool
) -> tuple[Slot, ConvPlan]:
    """(samples, channels, *classes, *results), and its plan; the weight is packed first, for all parts and samples."""
    source = _joined(x, len(axes))
    channels, outputs = source.shape[1] // groups, weight.shape[1] if swapped else weight.shape[0] // groups
    plan = ConvPlan(
        source.shape[0], groups, channels, outputs, axes, x.dtype.itemsize, swapped=swapped, bias=bias is not None
    )
    packed = call(pack_weights, [weight], (groups * plan.padded * plan.depth,), *weight_words(plan))
    inputs = (source, packed) if bias is None else (source, packed, bias)
    out = Spec((source.shape[0], groups * outputs, *plan.classes, *(axis.results for axis in axes)), x.dtype)
    layout = Workspace(words(plan), plan.image_bytes, plan.flops)
    return Slot(out, StridedStep(convolve, inputs, out, layout, strided=())), plan

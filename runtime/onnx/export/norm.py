"""Normalisations: by the operators of the standard, or by their formula."""

import numpy as np

from ....tape.ops.norm.form import Form
from .graph import OpCall, exports


@exports("layer_norm")
def _layer_norm(c: OpCall) -> str:
    weight = c.inputs[1] or c.graph.constant(np.ones(c.shape[-1], c.out.dtype))
    bias = [name for name in c.inputs[2:] if name is not None]
    return c("LayerNormalization", c.x, weight, *bias, axis=-1, epsilon=float(c.attrs["eps"]))


@exports("rms_norm")
def _rms_norm(c: OpCall) -> str:
    return _by_formula(c, Form(c.attrs["eps"], centred=False))


@exports("grouped_norm")
def _grouped_norm(c: OpCall) -> str:
    return _by_formula(c, Form(c.attrs["eps"], 1, c.attrs["num_groups"]))


@exports("instance_norm")
def _instance_norm(c: OpCall) -> str:
    return _by_formula(c, Form(c.attrs["eps"], 1, c.shape[1]))


@exports("batch_norm")
def _batch_norm(c: OpCall) -> str:
    return _by_formula(c, Form(c.attrs["eps"], c.attrs["channel_axis"], 0))


@exports("normalize")
def _normalize(c: OpCall) -> str:
    return _by_formula(c, Form(*c.attrs["form"]))


def _by_formula(c: OpCall, form: Form) -> str:
    """``(x - mean) / sqrt(variance + eps) * weight + bias``."""
    samples, channels, positions = form.split(c.shape)
    if form.groups:
        sizes, axes = (samples, form.groups, channels // form.groups * positions), [2]
    else:
        sizes, axes = (samples, channels, positions), [0, 2]
    x = c("Reshape", c.x, c.sizes(*sizes), allowzero=1)
    if form.centred:
        x = c("Sub", x, c("ReduceMean", x, c.sizes(*axes), keepdims=1))
    mean = c("ReduceMean", c("Mul", x, x), c.sizes(*axes), keepdims=1)
    made = c("Div", x, c("Sqrt", c("Add", mean, c.number(form.eps))))
    made = c("Reshape", made, c.sizes(*c.shape), allowzero=1)
    return _scaled(c, made, form.channel_axis, *c.inputs[1:])


def _scaled(c: OpCall, x: str, channel_axis: int, weight: str | None, bias: str | None = None) -> str:
    if weight is not None:
        x = c("Mul", x, _along(c, weight, channel_axis))
    return x if bias is None else c("Add", x, _along(c, bias, channel_axis))


def _along(c: OpCall, channels: str, channel_axis: int) -> str:
    """One number for each channel, in a shape that broadcasts against x."""
    behind = len(c.shape) - 1 - channel_axis % len(c.shape)
    return c("Reshape", channels, c.sizes(-1, *[1] * behind)) if behind else channels


@exports("batch_norm_inference")
def _batch_norm_inference(c: OpCall) -> str:
    axis = c.attrs["channel_axis"] % len(c.shape)
    if axis == 1:
        one, zero = (c.graph.constant(np.full(c.shape[1], value, c.out.dtype)) for value in (1, 0))
        inputs = c.x, c.inputs[3] or one, c.inputs[4] or zero, c.input(1), c.input(2)
        return c("BatchNormalization", *inputs, epsilon=float(c.attrs["eps"]))
    mean, variance = (_along(c, c.input(place), axis) for place in (1, 2))
    made = c("Div", c("Sub", c.x, mean), c("Sqrt", c("Add", variance, c.number(c.attrs["eps"]))))
    return _scaled(c, made, axis, c.inputs[3], c.inputs[4])

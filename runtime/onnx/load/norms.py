"""Norms beside those of batches, instances and layers."""

from typing import Any, cast

from ....tape import ops
from .operator import Operator, imports


@imports("GroupNormalization")
def _group_norm(n: Operator) -> Any:
    """Scale and bias are those of groups before version 21, and of channels since."""
    x, groups, norm = n.var(0), n.attributes["num_groups"], cast(Any, ops.group_norm)
    each = 1 if n.opset >= 21 else tuple(x.shape)[1] // groups
    weight, bias = (ops.repeat(n.var(place), each, 0) for place in (1, 2))
    return norm(x, groups, weight, bias, n.get("epsilon", 1e-5))


@imports("RMSNormalization")
def _rms_norm(n: Operator) -> Any:
    x, norm = n.var(0), cast(Any, ops.rms_norm)
    axis = n.get("axis", -1) % len(x.shape)
    flat = norm(ops.flatten(x, axis), None, n.get("epsilon", 1e-5))
    return ops.reshape(flat, tuple(x.shape)) * n.var(1)


@imports("MeanVarianceNormalization")
def _mean_variance_norm(n: Operator) -> Any:
    x, axes = n.var(0), tuple(n.get("axes", (0, 2, 3)))
    centred = x - ops.reduce_mean(x, axes, keepdims=True)
    return centred / (ops.std(x, axes, keepdims=True) + 1e-9)


@imports("LpNormalization")
def _lp_norm(n: Operator) -> Any:
    """0 where the norm is."""
    x, axis = n.var(0), n.get("axis", -1)
    size = ops.broadcast_to(ops.norm(x, float(n.get("p", 2)), axis, keepdims=True), tuple(x.shape))
    there, where = size > 0.0, cast(Any, ops.where)
    return where(there, x / where(there, size, 1.0), 0.0)


@imports("LRN")
def _local_response_norm(n: Operator) -> Any:
    """By the squares of neighbouring channels."""
    x, size = n.var(0), n.attributes["size"]
    channels, before = tuple(x.shape)[1], (size - 1) // 2
    widths = ((0, 0), (before, size - 1 - before)) + ((0, 0),) * (len(x.shape) - 2)
    squares = ops.pad(ops.square(x), widths)
    total = ops.narrow(squares, 0, channels, 1)
    for start in range(1, size):
        total = total + ops.narrow(squares, start, channels, 1)
    return x / ops.power(total * (n.get("alpha", 1e-4) / size) + n.get("bias", 1.0), n.get("beta", 0.75))

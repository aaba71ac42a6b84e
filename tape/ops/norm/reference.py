"""The living definition of the bits, continued: normalisations and their gradients.

As in `reference`, nothing here is shared with the kernels. A form is (eps, channel axis, groups, centred): the
channels of each sample are normalised in so many groups, or with 0 groups each channel over all samples.
"""

from collections.abc import Iterator
from math import prod

import numpy as np

from ....base.arrays import Array
from ...numerics.math.reference.sums import chain, reduce_sum, row_sum

FormFields = tuple[float, int, int, bool]


def normalize(x: Array, weight: Array | None, bias: Array | None, form: FormFields) -> Array:
    """``x' * weight + bias`` with ``x'`` the normalised array."""
    normal, _ = _normalized(x, form)
    return affine(normal, weight, bias, form[1])


def affine(x: Array, weight: Array | None, bias: Array | None, axis: int) -> Array:
    """``x * weight + bias`` with a number for each channel; what is not given is left out."""
    scaled = x if weight is None else x * along(weight, x, axis)
    return scaled if bias is None else scaled + along(bias, x, axis)


def normalize_grad(dy: Array, x: Array, weight: Array | None, form: FormFields) -> Array:
    """``((h - mean(h)) - x' * mean(h * x')) * inv`` with ``h = dy * weight``."""
    normal, inv = _normalized(x, form)
    h = affine(dy, weight, None, form[1])
    centred = h - _means(h, form) if form[3] else h
    grad: Array = (centred - normal * _means(h * normal, form)) * inv
    return grad


def normalize_weight_grad(dy: Array, x: Array, form: FormFields) -> Array:
    """The sum of ``dy * x'`` over all axes but the channels'."""
    normal, _ = _normalized(x, form)
    others = tuple(a for a in range(x.ndim) if a != form[1] % x.ndim)
    return reduce_sum(dy * normal, others)


def inference(
    x: Array,
    mean: Array,
    var: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    channel_axis: int = 1,
) -> Array:
    """``((x - mean) * inv) * weight + bias`` with ``inv = 1 / sqrt(var + eps)``."""
    one = x.dtype.type(1)
    inv = one / np.sqrt(var + x.dtype.type(eps))
    normal = (x - along(mean, x, channel_axis)) * along(inv, x, channel_axis)
    return affine(normal, weight, bias, channel_axis)


def along(parameter: Array, x: Array, axis: int) -> Array:
    """One number for each channel, repeated to the shape of ``x``."""
    sizes = [1] * x.ndim
    sizes[axis] = -1
    return np.broadcast_to(parameter.reshape(sizes), x.shape)


def _normalized(x: Array, form: FormFields) -> tuple[Array, Array]:
    """The normalised array, and the inverse deviation that each element was multiplied by."""
    eps, _, _, centred = form
    deviation = x - _means(x, form) if centred else x
    inv = x.dtype.type(1) / np.sqrt(_means(deviation * deviation, form) + x.dtype.type(eps))
    return deviation * inv, inv


def _means(x: Array, form: FormFields) -> Array:
    """At each element the mean of those that it is normalised with."""
    _, axis, groups, _ = form
    axis %= x.ndim
    split = x.reshape(prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :]))
    down_columns = not groups and axis == x.ndim - 1
    out = np.empty_like(split)
    for together in _sets(split, groups):
        terms = split[together].reshape(-1)
        total = chain(terms, np.ones_like(terms)) if down_columns else row_sum(terms)
        out[together] = total / x.dtype.type(terms.size)
    return out.reshape(x.shape)


def _sets(split: Array, groups: int) -> Iterator[tuple[slice, slice]]:
    """Which samples and channels are normalised together."""
    samples, channels, _ = split.shape
    if not groups:
        yield from ((slice(None), slice(c, c + 1)) for c in range(channels))
        return
    size = channels // groups
    for a in range(samples):
        yield from ((slice(a, a + 1), slice(g * size, (g + 1) * size)) for g in range(groups))

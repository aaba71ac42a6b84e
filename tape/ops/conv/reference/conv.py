"""The references of the convolution ops: attributes and leading axes on top of `dense`."""

from math import prod
from typing import Any

import numpy as np

from .....base.arrays import Array
from ....numerics.sizes import Sizes
from ....values.spec import Spec
from ..sizes import Window, transposed, weight_window, window
from . import dense as reference

DEFAULTS: dict[str, Any] = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}


def conv(x: Array, weight: Array, bias: Array | None = None, **attrs: Any) -> Array:
    """The op's value."""
    w, flat = window("conv", _spec(weight), **{**DEFAULTS, **attrs}), _joined(x, weight.ndim - 2)
    out = w.out(flat.shape[2:])
    y = reference.conv(flat, weight, out, w.stride, w.low, w.dilation, w.groups)
    return reference.with_bias(y, bias).reshape(*w.lead(x.shape), *y.shape[1:])


def conv_input_grad(cotangent: Array, weight: Array, size: Sizes, **attrs: Any) -> Array:
    """The op's value."""
    return _adjoint(cotangent, weight, None, window("conv_input_grad", _spec(weight), **attrs), size)


def conv_transpose(x: Array, weight: Array, bias: Array | None = None, **attrs: Any) -> Array:
    """The op's value."""
    given = {"output_padding": 0, **DEFAULTS, **attrs}
    return _adjoint(x, weight, bias, *transposed(_spec(x), _spec(weight), **given))


def conv_weight_grad(x: Array, cotangent: Array, kernel: Sizes, **attrs: Any) -> Array:
    """The op's value."""
    w, axes = weight_window(_spec(x), _spec(cotangent), kernel, **attrs), len(kernel)
    flat, g = _joined(x, axes), _joined(cotangent, axes)
    return reference.conv_weight_grad(flat, g, kernel, w.stride, w.low, w.dilation, w.groups)


def _adjoint(g: Array, weight: Array, bias: Array | None, w: Window, size: Sizes) -> Array:
    flat = _joined(g, weight.ndim - 2)
    y = reference.conv_input_grad(flat, weight, size, w.stride, w.low, w.dilation, w.groups)
    return reference.with_bias(y, bias).reshape(*w.lead(g.shape), *y.shape[1:])


def _spec(a: Array) -> Spec:
    return Spec(a.shape, a.dtype)


def _joined(x: Array, axes: int) -> Array:
    """``x`` with its leading axes joined into one."""
    return np.asarray(x.reshape(prod(x.shape[: -axes - 1]), *x.shape[-axes - 1 :]))

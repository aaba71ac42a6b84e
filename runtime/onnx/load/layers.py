"""Products, convolutions, norms, pools."""

from math import prod
from typing import Any, cast

from ....tape import ops
from .operator import Operator, imports


@imports("MatMul")
def _matmul(n: Operator) -> Any:
    return ops.matmul(n.var(0), n.var(1))


@imports("Gemm")
def _gemm(n: Operator) -> Any:
    a, b = n.var(0), n.var(1)
    a, b = (a.T if n.get("transA", 0) else a), (b.T if n.get("transB", 0) else b)
    made = ops.matmul(a, b)
    alpha, beta = n.get("alpha", 1.0), n.get("beta", 1.0)
    made = made if alpha == 1 else made * alpha
    if not n.has(2):
        return made
    return made + (n.var(2) if beta == 1 else n.var(2) * beta)


@imports("Einsum")
def _einsum(n: Operator) -> Any:
    equation = n.attributes["equation"].replace(" ", "")
    return ops.einsum(equation, *n.vars())


def _pairs(n: Operator, sizes: tuple[int, ...], reach: tuple[int, ...], strides: tuple[int, ...]) -> list[Any]:
    """Padding before and after each axis, as a rule or as numbers."""
    rule, axes = n.get("auto_pad", "NOTSET"), len(reach)
    if rule in ("NOTSET", ""):
        pads = n.get("pads", (0,) * 2 * axes)
        return list(zip(pads[:axes], pads[axes:], strict=True))
    if rule == "VALID":
        return [(0, 0)] * axes
    whole = zip(sizes, reach, strides, strict=True)
    needed = [max((-(-size // step) - 1) * step + span - size, 0) for size, span, step in whole]
    small = [total // 2 for total in needed]
    big = [total - low for total, low in zip(needed, small, strict=True)]
    return list(zip(small, big, strict=True) if rule == "SAME_UPPER" else zip(big, small, strict=True))


def _spatial(n: Operator, kernel: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Strides and dilations."""
    return tuple(n.get("strides", (1,) * len(kernel))), tuple(n.get("dilations", (1,) * len(kernel)))


def _windows(n: Operator, x: Any, kernel: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[Any, ...], tuple[int, ...]]:
    """Strides, padding and dilations of windows over x."""
    strides, dilations = _spatial(n, kernel)
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True))
    return strides, tuple(_pairs(n, tuple(x.shape)[2:], reach, strides)), dilations


@imports("Conv")
def _conv(n: Operator) -> Any:
    x, weight = n.var(0), n.var(1)
    kernel = tuple(weight.shape)[2:]
    strides, pairs, dilations = _windows(n, x, kernel)
    return ops.conv(x, weight, n.optional(2), strides, pairs, dilations, n.get("group", 1))


@imports("ConvTranspose")
def _conv_transpose(n: Operator) -> Any:
    x, weight = n.var(0), n.var(1)
    kernel = tuple(weight.shape)[2:]
    strides, dilations = _spatial(n, kernel)
    more = tuple(n.get("output_padding", (0,) * len(kernel)))
    if n.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or "output_shape" in n.attributes:
        raise n.error("expected padding by numbers, got a rule or the shape of the output")
    pairs = tuple(_pairs(n, (), kernel, strides))
    return ops.conv_transpose(x, weight, n.optional(2), strides, pairs, more, n.get("group", 1), dilations)


@imports("BatchNormalization")
def _batch_norm(n: Operator) -> Any:
    x, weight, bias, mean, variance = n.vars()
    return ops.batch_norm_inference(x, mean, variance, weight, bias, n.get("epsilon", 1e-5), 1)


@imports("InstanceNormalization")
def _instance_norm(n: Operator) -> Any:
    norm: Any = ops.instance_norm
    return norm(n.var(0), n.var(1), n.var(2), n.get("epsilon", 1e-5))


@imports("LayerNormalization")
def _layer_norm(n: Operator) -> Any:
    x, norm = n.var(0), cast(Any, ops.layer_norm)
    axis = n.get("axis", -1) % len(x.shape)
    if axis == len(x.shape) - 1:
        return norm(x, n.var(1), n.optional(2), n.get("epsilon", 1e-5))
    flat = norm(ops.flatten(x, axis), None, None, n.get("epsilon", 1e-5))
    made = ops.reshape(flat, tuple(x.shape)) * n.var(1)
    return made + n.var(2) if n.has(2) else made


@imports("MaxPool")
def _max_pool(n: Operator) -> Any:
    x, kernel = n.var(0), tuple(n.attributes["kernel_shape"])
    strides, pairs, dilations = _windows(n, x, kernel)
    return ops.max_pool(x, kernel, strides, pairs, dilations, bool(n.get("ceil_mode", 0)))


@imports("AveragePool")
def _average_pool(n: Operator) -> Any:
    x, kernel = n.var(0), tuple(n.attributes["kernel_shape"])
    strides, pairs, dilations = _windows(n, x, kernel)
    over = bool(n.get("ceil_mode", 0))
    if over and max(map(max, pairs)):  # the standard has a last window that begins in the padding, PyTorch and we not
        raise n.error("expected windows over the end or padding, got both")
    return ops.avg_pool(x, kernel, strides, pairs, bool(n.get("count_include_pad", 0)), over, dilations)


@imports("LpPool")
def _lp_pool(n: Operator) -> Any:
    """Padded cells are 0."""
    x, kernel, p = n.var(0), tuple(n.attributes["kernel_shape"]), float(n.get("p", 2))
    strides, pairs, dilations = _windows(n, x, kernel)
    if n.get("ceil_mode", 0):
        raise n.error("expected windows that end within the padding, got ceil_mode=1")
    means = ops.avg_pool(ops.power(ops.absolute(x), p), kernel, strides, pairs, True, False, dilations)
    return ops.power(means * float(prod(kernel)), 1 / p)


@imports("GlobalAveragePool")
def _global_average_pool(n: Operator) -> Any:
    x = n.var(0)
    return ops.reduce_mean(x, tuple(range(2, len(x.shape))), keepdims=True)


@imports("GlobalMaxPool")
def _global_max_pool(n: Operator) -> Any:
    x = n.var(0)
    return ops.reduce_max(x, tuple(range(2, len(x.shape))), keepdims=True)


@imports("Resize", "Upsample", constants=(1, 2, 3))
def _resize(n: Operator) -> Any:
    x, mode, places = n.var(0), n.get("mode", "nearest"), n.get("coordinate_transformation_mode", "half_pixel")
    sizes = tuple(x.shape)
    if n.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise n.error("expected sizes as they are, got keep_aspect_ratio_policy")
    given = n.numbers(3)
    factors = (1.0,) * len(sizes) if given else _along(n, _factors(n), (1.0,) * len(sizes))
    scaled = [size * factor for size, factor in zip(sizes, factors, strict=True)]
    wanted = _along(n, given, sizes) if given else tuple(map(int, scaled))
    if places == "pytorch_half_pixel" and min(wanted[2:]) > 1:  # of more than one cell the same
        places = "half_pixel"
    if wanted[:2] != sizes[:2] or len(sizes) == 2:
        raise n.error(f"expected other sizes behind the first two axes alone, got {sizes} to {wanted}")
    asymmetric = n.kind == "Upsample" or places == "asymmetric"
    if mode == "nearest" and asymmetric and n.get("nearest_mode", "floor") == "floor":
        return ops.upsample_nearest(x, size=wanted[2:])
    kinds = {("linear", 3): "linear", ("linear", 4): "bilinear", ("linear", 5): "trilinear", ("cubic", 4): "bicubic"}
    kind = kinds.get((mode, len(sizes)))
    plain = not n.get("antialias", 0) and not n.get("exclude_outside", 0) and n.get("cubic_coeff_a", -0.75) == -0.75
    whole = all(size % 1 == 0 for size in scaled)
    if kind and plain and whole and places in ("half_pixel", "align_corners"):
        return ops.interpolate(x, wanted[2:], mode=kind, align_corners=places == "align_corners")
    raise n.error(f"expected nearest cells by floor or linear weights, got mode {mode!r} with places {places!r}")


def _along(n: Operator, given: Any, others: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is given for some axes, and the others' for all others."""
    axes = n.get("axes", range(len(others)))
    named = {axis % len(others): value for axis, value in zip(axes, given, strict=True)}
    return tuple(named.get(axis, other) for axis, other in enumerate(others))


def _factors(n: Operator) -> list[float]:
    given = n.get("scales", None) or n.constant(2 if n.opset > 10 else 1).reshape(-1)
    return [float(factor) for factor in given]

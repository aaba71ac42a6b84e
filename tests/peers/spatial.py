"""Rows of ops over spatial axes: convolutions, pools, upsampling."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .row import Arguments, Arrays, Attrs, Draw, Row

Sizes = tuple[int, ...]


def each(draw: Draw, rank: int, low: int, high: int) -> Any:
    """A number for each spatial axis, or one for all of them."""
    return draw.one_of(draw.integers(rank, low, high), draw.integer(low, high))


def spread(value: Any, rank: int) -> Sizes:
    """The number for each axis."""
    return value if isinstance(value, tuple) else (value,) * rank


def uneven(draw: Draw, padding: Sizes) -> tuple[tuple[int, int], ...]:
    """Padding on one side of each axis, and no less on the other."""
    return tuple([draw.one_of((n, n + 1), (n + 1, n)) for n in padding])


def bordered(t: Any, x: Any, padding: Any, value: float = 0.0) -> tuple[Any, Any]:
    """What the peer is given in the place of (before, behind): an input that has the borders already."""
    if not isinstance(padding, tuple) or not isinstance(padding[0], tuple):
        return x, padding
    return t.nn.functional.pad(x, [n for pair in reversed(padding) for n in pair], value=value), 0


def extents(draw: Draw, kernel: Sizes, padding: Any, dilation: Any) -> Sizes:
    """Spatial sizes that leave room for one window at least, and for up to four more cells."""
    rules = zip(kernel, spread(padding, len(kernel)), spread(dilation, len(kernel)), strict=True)
    return tuple([max(1, d * (k - 1) + 1 - 2 * p) + draw.integer(0, 4) for k, p, d in rules])


def convolved(draw: Draw) -> tuple[Arrays, Attrs]:
    rank = draw.integer(1, 3)
    kernel = draw.integers(rank, 1, 3)
    groups, inner, outer = draw.integers(3, 1, 3)
    attrs = {name: each(draw, rank, low, high) for name, low, high in
             (("stride", 1, 3), ("padding", 0, 2), ("dilation", 1, 2))}  # fmt: skip
    space = extents(draw, kernel, attrs["padding"], attrs["dilation"])
    attrs["padding"] = draw.one_of(attrs["padding"], uneven(draw, spread(attrs["padding"], rank)))
    batch = draw.one_of((draw.integer(1, 3),), ())
    arrays = {
        "x": draw.normal(*batch, groups * inner, *space),
        "weight": draw.normal(groups * outer, inner, *kernel),
        "bias": draw.optional(draw.normal(groups * outer)),
    }
    return arrays, {**attrs, "groups": groups}


def transposed(draw: Draw) -> tuple[Arrays, Attrs]:
    rank = draw.integer(1, 3)
    kernel = draw.integers(rank, 1, 3)
    groups, inner, outer = draw.integers(3, 1, 3)
    stride, dilation, padding = draw.integers(rank, 1, 3), draw.integers(rank, 1, 2), draw.integers(rank, 0, 2)
    output_padding = tuple([draw.integer(0, max(s, d) - 1) for s, d in zip(stride, dilation, strict=True)])
    rules = zip(kernel, stride, dilation, padding, output_padding, strict=True)
    least = [1 + max(0, -((d * (k - 1) + o - 2 * p) // s)) for k, s, d, p, o in rules]
    space = [n + draw.integer(0, 3) for n in least]
    batch = draw.one_of((draw.integer(1, 3),), ())
    arrays = {
        "x": draw.normal(*batch, groups * inner, *space),
        "weight": draw.normal(groups * inner, outer, *kernel),
        "bias": draw.optional(draw.normal(groups * outer)),
    }
    attrs = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    return arrays, {**attrs, "groups": groups}


def pooled(ranks: tuple[int, int] = (1, 3), **extra: Callable[[Draw, int], Any]) -> Arguments:
    """Windows that slide; at most half of one lies in the padding, as the peer demands, and each holds a cell.

    With three axes no kernel may be larger than the input, or the peer refuses it.
    """

    def arguments(draw: Draw) -> tuple[Arrays, Attrs]:
        rank = draw.integer(*ranks)
        kernel = draw.integers(rank, 1, 4)
        attrs = {name: value(draw, rank) for name, value in extra.items()}
        padding = tuple([draw.integer(0, k // 2) for k in kernel])
        dilation = attrs.get("dilation", 1)
        space = extents(draw, kernel, padding if rank < 3 else 0, dilation)
        space = tuple(map(max, space, spread(dilation, rank)))
        attrs |= {"kernel_size": kernel, "stride": draw.one_of(None, each(draw, rank, 1, 3)), "padding": padding}
        return {"x": draw.distinct(*draw.integers(2, 1, 3), *space)}, attrs

    return arguments


def adapted(draw: Draw) -> tuple[Arrays, Attrs]:
    rank = draw.integer(1, 3)
    x = draw.distinct(*draw.integers(2, 1, 2), *draw.integers(rank, 1, 6))
    return {"x": x}, {"output_size": draw.integers(rank, 1, 5)}


def enlarged(draw: Draw) -> tuple[Arrays, Attrs]:
    rank = draw.integer(1, 3)
    x = draw.normal(*draw.integers(2, 1, 2), *draw.integers(rank, 1, 5))
    given = draw.one_of("scale_factor", "size")
    return {"x": x}, {given: draw.integers(rank, 1, 3 if given == "scale_factor" else 8)}


def interpolated(draw: Draw) -> tuple[Arrays, Attrs]:
    x = draw.normal(*draw.integers(2, 1, 2), *draw.integers(2, 1, 6))
    return {"x": x}, {"size": draw.integers(2, 1, 8), "align_corners": draw.one_of(False, True)}


def of_rank(name: str, rank: int, t: Any) -> Any:
    """The function that the peer has for this many spatial axes."""
    return getattr(t.nn.functional, f"{name}{rank}d")


def conv(t: Any, x: Any, weight: Any, bias: Any, padding: Any, **attrs: Any) -> Any:
    x, padding = bordered(t, x, padding)
    return of_rank("conv", weight.ndim - 2, t)(x, weight, bias, padding=padding, **attrs)


def conv_transpose(t: Any, x: Any, weight: Any, bias: Any, **attrs: Any) -> Any:
    return of_rank("conv_transpose", weight.ndim - 2, t)(x, weight, bias, **attrs)


def pool(name: str) -> Callable[..., Any]:
    """A pool whose counterpart has this name."""
    return lambda t, x, **attrs: of_rank(name, x.ndim - 2, t)(x, **attrs)


def ceiled(draw: Draw, _: int) -> bool:
    return bool(draw.one_of(False, True))


def avg_pool(t: Any, x: Any, padding: Any, dilation: Any = 1, **attrs: Any) -> Any:
    x, padding = bordered(t, x, padding)
    if dilation != 1:
        whole = np.prod(attrs["kernel_size"])
        counts = whole if attrs["count_include_pad"] else summed(t, t.ones_like(x), padding, dilation, attrs)
        return summed(t, x, padding, dilation, attrs) / counts
    return of_rank("avg_pool", x.ndim - 2, t)(x, padding=padding, **attrs)


def summed(t: Any, x: Any, padding: Any, dilation: Any, attrs: Attrs) -> Any:
    """The sums of windows with gaps, which the peer's pools have not: a convolution with ones."""
    planes, ones = x.reshape(-1, 1, *x.shape[2:]), t.ones(1, 1, *attrs["kernel_size"], dtype=x.dtype)
    strides = attrs["kernel_size"] if attrs["stride"] is None else attrs["stride"]
    made = of_rank("conv", x.ndim - 2, t)(planes, ones, None, strides, padding, dilation)
    return made.reshape(*x.shape[:2], *made.shape[2:])


def averaged(draw: Draw) -> tuple[Arrays, Attrs]:
    """An average pool; where borders differ they are counted, and no window hangs over them, nor if it has gaps."""
    if draw.one_of(False, True):
        arrays, attrs = pooled(count_include_pad=ceiled, dilation=lambda draw, rank: each(draw, rank, 2, 3))(draw)
        return arrays, {**attrs, "ceil_mode": False}
    arrays, attrs = pooled(count_include_pad=ceiled, ceil_mode=ceiled)(draw)
    if draw.one_of(False, True):
        kernel = attrs["kernel_size"]
        padding = tuple([draw.one_of((0, k // 2), (k // 2, 0)) for k in kernel])
        attrs |= {"padding": padding, "count_include_pad": True, "ceil_mode": False}
        (x,) = arrays.values()
        assert x is not None
        arrays = {"x": draw.distinct(*x.shape[:2], *map(max, x.shape[2:], kernel))}
    return arrays, attrs


def smooth_max_pool(t: Any, x: Any, kernel_size: Sizes, stride: Any, padding: Sizes, beta: float) -> Any:
    """The logarithm of the sum of exponentials of unfolded windows."""
    rank = len(kernel_size)
    outside = -np.inf if beta > 0 else np.inf
    x = t.nn.functional.pad(x, [p for p in reversed(padding) for _ in range(2)], value=outside)
    for axis, (k, s) in enumerate(zip(kernel_size, spread(stride or kernel_size, rank), strict=True)):
        x = x.unfold(2 + axis, k, s)
    return t.logsumexp(beta * x, tuple(range(-rank, 0))) / beta


def upsample_nearest(t: Any, x: Any, **attrs: Any) -> Any:
    return t.nn.functional.interpolate(x, mode="nearest", **attrs)


def upsample_bilinear(t: Any, x: Any, **attrs: Any) -> Any:
    return t.nn.functional.interpolate(x, mode="bilinear", **attrs)


TIES = "ties: all to the first cell in row-major order; windows without a cell: refused"

ROWS = [
    Row("conv", conv, convolved),
    Row("conv_transpose", conv_transpose, transposed),
    Row("max_pool", pool("max_pool"),
        pooled(dilation=lambda draw, rank: each(draw, rank, 1, 2), ceil_mode=ceiled), TIES),
    Row("avg_pool", avg_pool, averaged),
    Row("smooth_max_pool", smooth_max_pool,
        pooled((1, 2), beta=lambda draw, _: draw.one_of(1.0, -1.0) * draw.real(0.5, 4.0)),
        "padded cells take no part; the peer has no such pool: its parts stand beside ours"),
    Row("adaptive_max_pool", pool("adaptive_max_pool"), adapted, TIES),
    Row("adaptive_avg_pool", pool("adaptive_avg_pool"), adapted),
    Row("upsample_nearest", upsample_nearest, enlarged),
    Row("upsample_bilinear", upsample_bilinear, interpolated),
]  # fmt: skip

"""What the arguments of pools mean: the rule of the windows along each spatial axis, checked, and the windows.

A rule is (kernel, stride, padding, dilation), or (kernel, stride, padding before, dilation, padding behind, 1 if the
last window may hang over the end) where that is not enough, or (outputs,) for windows that adapt to the axis.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...numerics.engine.kernel import Kernel
from ...numerics.sizes import Sizes
from ...record.kinds.values import Given, PerAxis, Values, each
from ...record.lowering import Slot, call
from ...record.types import like
from ...values.per_axis import PerAxis as Numbers, PerSide, per_side
from ...values.spec import Spec
from .kernels.upsample import weighted_sums
from .kernels.weighted import WeightedAxis, words as weighted_words
from .kernels.windows import WindowAxis, adaptive, outputs, sliding, words

Rules = tuple[tuple[int, ...], ...]


def sizes_for(op: str, name: str, given: Sizes) -> Sizes:
    """``given``, which must be sizes of at least 1. Raises ShapeError."""
    if not given or min(given) < 1:
        raise ShapeError(f"{op}: argument {name!r}: expected a size of at least 1 for each spatial axis, got {given}")
    return given


def _axes(given: Given) -> int:
    return len(given["kernel_size"])


SIZES = Values(
    "a size of at least 1 for each spatial axis",
    lambda sizes: sizes is None or (len(sizes) > 0 and min(sizes) > 0),
    ((2, 0), (-1, 2), ()),
    ShapeError,
)
KERNEL = {"kernel_size": SIZES, "stride": PerAxis(1, _axes)}
SLIDING = {**KERNEL, "padding": PerAxis(0, _axes, sides=True)}
DILATING = {**SLIDING, "dilation": PerAxis(1, _axes)}


def sliding_rules(
    op: str,
    kernel_size: Sizes,
    stride: Numbers | None = None,
    padding: PerSide = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> Rules:
    """The rules of a kernel that slides. Raises ShapeError.

    >>> sliding_rules("max_pool", (3, 2), padding=(1, 0))
    ((3, 3, 1, 1), (2, 2, 0, 1))
    >>> sliding_rules("max_pool", (3, 2), padding=((1, 0), (0, 0)))
    ((3, 3, 1, 1, 0, 0), (2, 2, 0, 1))
    """
    kernel, rank = kernel_size, len(kernel_size)
    strides, dilations = each(kernel if stride is None else stride, rank), each(dilation, rank)
    ends = per_side(padding, rank) or ()
    reach = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True))
    if any(2 * max(pair) > r for pair, r in zip(ends, reach, strict=True)):
        raise ShapeError(
            f"{op}: argument 'padding': expected at most half of what the kernel spans, {reach}, got {padding!r}"
        )
    slid = zip(kernel, strides, ends, dilations, strict=True)
    return tuple(
        (k, s, low, d, high, int(ceil_mode)) if ceil_mode or low != high else (k, s, low, d)
        for k, s, (low, high), d in slid
    )


def adaptive_rules(output_size: Sizes) -> Rules:
    """The rules of windows that adapt."""
    return tuple((n,) for n in output_size)


def pooled(op: str, x: Spec, rules: Rules) -> Spec:
    """The result of a pool of ``x``. Raises ShapeError where a window would have no cell."""
    leading = x.shape[: x.rank - len(rules)]
    if x.rank < len(rules) or 0 in x.shape[len(leading) :]:
        raise ShapeError(
            f"{op}: argument 'x': expected {len(rules)} spatial axes at the end, none of them empty, "
            f"got shape {x.shape}"
        )
    sizes = tuple(r[0] if len(r) == 1 else outputs(n, *r) for n, r in zip(x.shape[len(leading) :], rules, strict=True))
    if min(sizes) < 1 or any(0 in axis.counts for axis in axes_of(x.shape, rules)):
        raise ShapeError(
            f"{op}: argument 'x': expected spatial sizes that hold a cell of every window, got shape {x.shape} for a "
            f"kernel of {tuple(r[0] for r in rules)}"
        )
    return like(x, (*leading, *sizes))


def axes_of(shape: Sizes, rules: Rules) -> list[WindowAxis]:
    """The windows along each spatial axis of an array of this shape."""
    spatial = shape[len(shape) - len(rules) :]
    return [adaptive(n, *r) if len(r) == 1 else sliding(n, *r) for n, r in zip(spatial, rules, strict=True)]


def counted_axes(shape: Sizes, rules: Rules, whole: bool) -> list[WindowAxis]:
    """The windows whose cells an average divides by: of the axes with their borders if ``whole``, of real cells if not.

    >>> counted_axes((3,), ((2, 2, 0, 1, 0, 1),), True)
    [WindowAxis(source=3, firsts=(0, 2), counts=(2, 1), step=1)]
    """
    axes = axes_of(shape, rules)
    return [_counted(axis, rule) for axis, rule in zip(axes, rules, strict=True)] if whole else axes


def _counted(axis: WindowAxis, rule: Sequence[int]) -> WindowAxis:
    kernel, stride, low, dilation = rule[:4]
    size = axis.source + low + (rule[4] if len(rule) > 4 else low)
    firsts = tuple([o * stride for o in range(axis.size)])
    counts = tuple([min(kernel, -((first - size) // dilation)) for first in firsts])
    return WindowAxis(size, firsts, counts, dilation)


def through(
    kernel: Kernel,
    inputs: Sequence[Slot],
    out: Sizes,
    axes: Sequence[WindowAxis],
    work: int = 1,
    number: float = 0,
    back: bool = False,
    dtype: np.dtype[Any] | None = None,
) -> Slot:
    """A kernel of windows along the last axes: from the cells to the windows, or back, with a number for its formula.

    ``work`` is the number of operations for each cell of each window.
    """
    planes, cells = prod(out[: len(out) - len(axes)]), prod(sum(axis.counts) for axis in axes)
    ints = words(planes, [axis.transposed() for axis in axes] if back else axes, number)
    return call(kernel, inputs, out, *ints, work=work * planes * cells, dtype=dtype)


def weighted(x: Slot, out: Sizes, axes: Sequence[WeightedAxis], *, back: bool) -> Slot:
    """Weighted sums along the last axes, from the cells to the outputs or back."""
    volumes = prod(out[: len(out) - len(axes)])
    read = volumes * prod(sum(map(len, axis.windows)) for axis in axes)
    ints = weighted_words(volumes, [axis.transposed() for axis in axes] if back else axes)
    return call(weighted_sums, [x], out, *ints, work=read)

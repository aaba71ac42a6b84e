"""Convolutions for tests: their plans, operands, and what the CPU's kernels make of them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dgrr.base.arrays import Array
from dgrr.tape.numerics.engine.kernel import Kernel
from dgrr.tape.numerics.engine.launch import Words, launch
from dgrr.tape.ops.conv.kernels.axis import adjoint, forward
from dgrr.tape.ops.conv.kernels.forward import convolve, interleave, pack_weights
from dgrr.tape.ops.conv.kernels.plan import ConvPlan
from dgrr.tape.ops.conv.kernels.weight_grad import convolve_weights
from dgrr.tape.ops.conv.kernels.words import interleave_words, weight_words, words

from .host import NO_FAULT, Host, output, values, wrong

Sizes = tuple[int, ...]


class Conv(NamedTuple):
    """Sizes of a convolution: for each group so many channels and outputs; the rest for each axis."""

    samples: int
    groups: int
    channels: int
    outputs: int
    size: Sizes
    kernel: Sizes
    stride: Sizes
    low: Sizes
    high: Sizes
    dilation: Sizes


SMALL = (
    Conv(2, 1, 3, 4, (5, 7), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    Conv(2, 1, 2, 3, (6,), (2,), (1,), (0,), (0,), (1,)),
    Conv(2, 2, 2, 3, (5, 6), (2, 3), (2, 1), (1, 0), (1, 0), (1, 2)),
    Conv(1, 1, 2, 2, (3, 4, 3), (2, 2, 2), (2, 2, 2), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    Conv(3, 1, 16, 40, (9, 8), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
    Conv(1, 1, 4, 70, (12, 11), (5, 5), (3, 3), (2, 2), (2, 2), (2, 2)),
    Conv(2, 1, 2, 20, (4, 5, 6), (3, 2, 3), (1, 2, 1), (1, 0, 2), (1, 1, 0), (1, 1, 2)),
    Conv(2, 1, 3, 17, (40,), (1,), (4,), (1,), (0,), (1,)),
    Conv(0, 1, 2, 3, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    Conv(1, 1, 0, 3, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
)

TILED = (
    Conv(2, 1, 3, 70, (5, 7), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    Conv(2, 1, 30, 36, (6, 5), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    Conv(2, 2, 5, 24, (6, 9), (3, 3), (2, 1), (1, 1), (1, 1), (1, 1)),
    Conv(1, 1, 70, 40, (3, 4, 3), (2, 2, 2), (1, 1, 2), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    Conv(3, 1, 4, 16, (20, 12), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
)
"""Of a device with one multiprocessor these have every large tile."""

SINGLE = (
    Conv(5, 3, 1, 1, (20, 16), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    Conv(9, 2, 1, 2, (15, 9), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
    Conv(3, 2, 1, 1, (30, 21), (5, 3), (3, 2), (4, 1), (2, 0), (2, 1)),
    Conv(30, 4, 1, 1, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    Conv(2, 3, 1, 1, (700,), (4,), (2,), (0,), (3,), (3,)),
    Conv(2, 1, 1, 1, (40, 33), (7, 7), (1, 1), (0, 3), (6, 3), (1, 1)),
)
"""Groups of one channel; their results end in the middle of planes, rows and blocks of 256."""


def both(
    host: Host,
    kernel: Kernel,
    given: Words,
    shape: Sizes,
    inputs: Sequence[Array],
    scratch: int,
    packed: Sequence[Array] | None = None,
) -> tuple[Array, Array]:
    """What the form makes, and what the CPU makes."""
    dtype = inputs[0].dtype
    want, (got, untouched) = np.empty(shape, dtype), output(shape, dtype)
    launch(kernel, dtype, given, [want, *inputs, *([np.empty(scratch + 64, np.uint8)] if scratch else [])], 0)
    own, numbers = packed or inputs, tuple(given.values.tolist())
    assert host.run(kernel.name, [got, *own], numbers, dtype) == NO_FAULT
    assert untouched(), "a kernel writes outside of its output"
    return got, want


def checked(host: Host, conv: Conv, kind: str, dtype: Any, *, bias: bool) -> Iterator[tuple[str, int]]:
    """Each of the kernels, and how many elements of it are wrong."""
    rng = np.random.default_rng(0)
    n, groups, channels, outputs, size, kernel, stride, low, high, dilation = conv
    ends = zip(size, kernel, stride, low, high, dilation, strict=True)
    out = tuple((i + a + b - (d * (k - 1) + 1)) // s + 1 for i, k, s, a, b, d in ends)
    x = values(rng, (n, groups * channels, *size), kind, dtype)
    g = values(rng, (n, groups * outputs, *out), kind, dtype)
    weight = values(rng, (groups * outputs, channels, *kernel), kind, dtype)
    ahead = tuple(map(forward, size, out, kernel, stride, low, dilation))
    back = tuple(map(adjoint, out, size, kernel, stride, low, dilation))
    biases = [values(rng, (groups * outputs,), kind, dtype)] if bias else []
    for name, source, axes, extra in (("forward", x, ahead, biases), ("adjoint", g, back, [])):
        swapped = name == "adjoint"
        sizes = (outputs, channels) if swapped else (channels, outputs)
        plan = ConvPlan(n, groups, *sizes, axes, dtype.itemsize, swapped=swapped, bias=bool(extra))
        place = (groups * plan.padded * plan.depth,)
        own, cpus = both(host, pack_weights, Words(*weight_words(plan)), place, [weight], 0)
        shape = (n, groups * sizes[1], *plan.classes, *(axis.results for axis in axes))
        inputs, others = [source, cpus, *extra], [source, own, *extra]
        got, want = both(host, convolve, words(plan), shape, inputs, plan.image_bytes, packed=others)
        yield name, wrong(got, want)
        if swapped and max(stride) > 1:
            between = Words(*interleave_words(plan, size))
            got, want = both(host, interleave, between, (n, groups * channels, *size), [want], 0)
            yield "interleave", wrong(got, want)
    plan = ConvPlan(n, groups, channels, outputs, ahead, dtype.itemsize)
    shape = (groups, plan.depth, outputs)
    got, want = both(host, convolve_weights, words(plan), shape, [x, g], plan.gradient_bytes)
    yield "weights", wrong(got, want)

"""Copies of strided arrays on CUDA devices."""

from math import prod
from typing import Any

import numpy as np

from ...numerics.basic.copy import AXES, CopiedAxis
from ...numerics.cuda.tiles import PROCESSORS
from ...numerics.cuda.written import REALS, WORDS, CudaForm, Launch, Words, blocks_of, divisor, written

SOURCE = "tape/ops/shape/copies.cu"

THREADS, EACH = 256, 4
"""Threads of a block, and elements of a thread where there are enough for a device."""

MOST_AXES, LARGEST = 5, 1 << 31
"""The most axes whose numbers are words of a launch, and the elements from which 32 bits are too few."""

ELEMENTS = {1: "char", **REALS}
"""The types by bytes: what moves is bits."""


def _axes(words: Words) -> tuple[CopiedAxis, ...]:
    """Those that have more elements than one, the furthest apart in the output first."""
    axes = [words[i : i + 3] for i in range(AXES, len(words), 3)]
    found = sorted(((size, stride, step) for size, stride, step in axes if size > 1), key=lambda axis: -axis[2])
    return tuple(found) or ((1, 0, 1),)


def _numbers(axis: CopiedAxis) -> Words:
    _, stride, step = axis
    return step, *divisor(step), stride


def launches(dtype: np.dtype[Any], words: Words) -> tuple[Launch, ...]:
    """The launch of ``copy``."""
    total = prod(words[AXES::3])
    if total == 0:
        return ()
    axes, each = _axes(words), EACH if total >= EACH * THREADS * PROCESSORS else 1
    few = len(axes) <= MOST_AXES and total < LARGEST
    defines = (("REAL", ELEMENTS[dtype.itemsize]), ("AXES", len(axes) * few), ("PER", each))
    own = [number for axis in axes for number in _numbers(axis)] if few else []
    grid = (blocks_of(total, each * THREADS), 1, 1)
    return (Launch(SOURCE, "copy", defines, grid, (THREADS, 1, 1), 0, (0, 1, WORDS), (total, *own)),)


written["copy"] = CudaForm(launches, lambda dtype, words: 0)

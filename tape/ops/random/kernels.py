"""Kernels that draw: Philox 4x32-10 by place, so that no thread, split or neighbour changes a number.

The words of a call begin with: elements, words of the stream for each, low and high word of the seed, micro-batch,
ordinal. The step is read from an array, since it changes from replay to replay.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np
from numba import njit

from ...numerics.engine.intrinsics import real, retyped, stack, word
from ...numerics.engine.kernel import kernel, share, vector, vector_as
from ...numerics.math.philox import MULTIPLIERS, ROUNDS, WEYL, WORD
from ...numerics.simd.operations import float_of, select

INT64, UINT64 = np.int64(0), np.uint64(0)
MULTIPLIER_0, MULTIPLIER_1 = MULTIPLIERS
WEYL_0, WEYL_1 = np.uint64(WEYL[0]), np.uint64(WEYL[1])
LOW, HALF = np.uint64(WORD), np.uint64(32)
SHORT, LONG = np.uint64(8), np.uint64(11)
"""Bits that are dropped from one word, and from two, for a number of 24 or 53 bits."""

CHUNK = 128
"""Words that are drawn at a time, on the stack."""


@njit(inline="always")
def _block(words, at, block, ordinal, micro_batch, step, key0, key1):
    """Four words of the stream, written from ``words[at]`` on."""
    x0, x1, x2, x3 = block, ordinal, micro_batch, step
    for _ in range(ROUNDS):
        product0, product1 = MULTIPLIER_0 * x0, MULTIPLIER_1 * x2
        x0, x1 = (product1 >> HALF) ^ x1 ^ key0, product1 & LOW
        x2, x3 = (product0 >> HALF) ^ x3 ^ key1, product0 & LOW
        key0, key1 = (key0 + WEYL_0) & LOW, (key1 + WEYL_1) & LOW
    words[at], words[at + 1], words[at + 2], words[at + 3] = x0, x1, x2, x3


@njit(inline="always")
def _fill(words, first, ints, step):
    """The `CHUNK` words of the stream from block ``first`` on."""
    key0, key1 = np.uint64(word(ints, 2)), np.uint64(word(ints, 3))
    micro_batch, ordinal = np.uint64(word(ints, 4)), np.uint64(word(ints, 5))
    for b in range(CHUNK // 4):
        _block(words, 4 * b, np.uint64(first + b), ordinal, micro_batch, np.uint64(step) & LOW, key0, key1)


@njit(inline="always")
def _unit(table, words, i, each):
    """Number ``i`` of a chunk, from [0, 1)."""
    if each == 1:
        return real(table, words[i] >> SHORT) * real(table, 2.0**-24)
    joined = words[2 * i] | words[2 * i + 1] << HALF
    return real(table, joined >> LONG) * real(table, 2.0**-53)


@kernel
def uniform(table, ints, part, parts):
    """Numbers from [0, 1); arrays: out, step."""
    n, each = word(ints, 0), word(ints, 1)
    step = vector_as(table, INT64, 1, 0, 1)[0]
    words = stack(retyped(table, UINT64), CHUNK)
    per_chunk = CHUNK // each
    first, mine = share((n + per_chunk - 1) // per_chunk, part, parts)
    for chunk in range(first, first + mine):
        _fill(words, chunk * (CHUNK // 4), ints, step)
        start = chunk * per_chunk
        out = vector(table, 0, start, min(per_chunk, n - start))
        for i in range(out.size):
            out[i] = _unit(table, words, i, each)
    return 0


@kernel
def dropout(table, ints, part, parts):
    """``out = x * factor`` where the number drawn, from one word, is at least p, else +0.

    Arrays: out, x, step; ints: … with one word for each element, p, factor.
    """
    n = word(ints, 0)
    step = vector_as(table, INT64, 2, 0, 1)[0]
    p, factor = float_of(word(ints, 6)), real(table, float_of(word(ints, 7)))
    words = stack(retyped(table, UINT64), CHUNK)
    first, mine = share((n + CHUNK - 1) // CHUNK, part, parts)
    for chunk in range(first, first + mine):
        _fill(words, chunk * (CHUNK // 4), ints, step)
        start = chunk * CHUNK
        count = min(CHUNK, n - start)
        out, x = vector(table, 0, start, count), vector(table, 1, start, count)
        for i in range(count):
            out[i] = select(np.float64(words[i] >> SHORT) * 2.0**-24 >= p, x[i] * factor, real(table, 0.0))
    return 0

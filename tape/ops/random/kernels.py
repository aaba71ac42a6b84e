"""Kernels that draw: Philox 4x32-10 by place, so that no thread, split or neighbour changes a number.

The words of a call begin with: elements, words of the stream for each, low and high word of the seed, micro-batch,
ordinal; the attributes of the draw follow. The step is read from an array, since it changes from replay to replay; one
that has not its 32 bits is refused.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np
from numba import njit

from ...numerics.engine.intrinsics import real, retyped, stack, word
from ...numerics.engine.kernel import kernel, share, vector, vector_as
from ...numerics.math.elementary import log
from ...numerics.math.philox import MULTIPLIERS, ROUNDS, WEYL, WORD
from ...numerics.math.trigonometry import cos_near
from ...numerics.simd.lanes import inlined
from ...numerics.simd.operations import float_of, select, sqrt

INT64, UINT64 = np.int64(0), np.uint64(0)
MULTIPLIER_0, MULTIPLIER_1 = MULTIPLIERS
WEYL_0, WEYL_1 = np.uint64(WEYL[0]), np.uint64(WEYL[1])
STEPS = np.uint64(1 << 32)
LOW, HALF = np.uint64(WORD), np.uint64(32)
SHORT, LONG = np.uint64(8), np.uint64(11)
"""Bits that are dropped from one word, and from two, for a number of 24 or 53 bits."""

TURN = 6.283185307179586
"""2 pi."""

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
        _block(words, 4 * b, np.uint64(first + b), ordinal, micro_batch, np.uint64(step), key0, key1)


@inlined
def _long(words, i):
    """Words ``2 i`` and ``2 i + 1`` joined, the earlier one low."""
    return words[2 * i] | words[2 * i + 1] << HALF


@inlined
def _fraction(words, i):
    """A float64 from [0, 1), of two words."""
    return np.float64(_long(words, i) >> LONG) * 2.0**-53


@inlined
def _drawn(number, each, table, ints, part, parts):
    """Every element from ``each`` words: ``number(table, ints, words, i)`` of a chunk; arrays: out, step."""
    n = word(ints, 0)
    step = vector_as(table, INT64, 1, 0, 1)[0]
    if np.uint64(step) >= STEPS:
        return 1
    words = stack(retyped(table, UINT64), CHUNK)
    per_chunk = CHUNK // each
    first, mine = share((n + per_chunk - 1) // per_chunk, part, parts)
    for chunk in range(first, first + mine):
        _fill(words, chunk * (CHUNK // 4), ints, step)
        start = chunk * per_chunk
        out = vector(table, 0, start, min(per_chunk, n - start))
        for i in range(out.size):
            out[i] = number(table, ints, words, i)
    return 0


@inlined
def _unit(table, ints, words, i):
    if word(ints, 1) == 1:
        return real(table, words[i] >> SHORT) * real(table, 2.0**-24)
    return real(table, _fraction(words, i))


@kernel
def uniform(table, ints, part, parts):
    """Numbers from [0, 1); arrays: out, step."""
    return _drawn(_unit, word(ints, 1), table, ints, part, parts)


@inlined
def _normal(table, ints, words, i):
    radius = sqrt(log(1.0 - _fraction(words, 2 * i)) * -2.0)
    z = radius * cos_near(_fraction(words, 2 * i + 1) * TURN)
    return real(table, z * float_of(word(ints, 7)) + float_of(word(ints, 6)))


@kernel
def normal(table, ints, part, parts):
    """``z * std + mean`` in float64, rounded once, by Box and Muller; arrays: out, step; ints: … mean, std."""
    return _drawn(_normal, 4, table, ints, part, parts)


@inlined
def _below(table, ints, words, i):
    return real(table, _fraction(words, i) < float_of(word(ints, 6)))


@kernel
def bernoulli(table, ints, part, parts):
    """Whether a number from [0, 1) is below p; arrays: out (bools), step; ints: … p."""
    return _drawn(_below, 2, table, ints, part, parts)


@inlined
def _integer(table, ints, words, i):
    """``low + floor(W * n / 2**128)``, W being the block: a product by columns, of which the last carry stays."""
    n_low, n_high = np.uint64(word(ints, 7)), np.uint64(word(ints, 8))
    carry = np.uint64(0)
    for k in range(4):
        w = words[4 * i + k]
        carry = ((w * n_low + (carry & LOW)) >> HALF) + w * n_high + (carry >> HALF)
    return real(table, np.uint64(word(ints, 6)) + carry)


@kernel
def integers(table, ints, part, parts):
    """Whole numbers from low on; arrays: out (int64), step; ints: … low, low and high word of how many there are."""
    return _drawn(_integer, 4, table, ints, part, parts)


@inlined
def _key(table, ints, words, i):
    return real(table, _long(words, i))


@kernel
def sort_keys(table, ints, part, parts):
    """The 64-bit keys of a permutation; arrays: out (int64, to be read without a sign), step."""
    return _drawn(_key, 2, table, ints, part, parts)


@kernel
def dropout(table, ints, part, parts):
    """``out = x * factor`` where the number drawn, from one word, is at least p, else +0.

    Arrays: out, x, step; ints: … with one word for each element, p, factor.
    """
    n = word(ints, 0)
    step = vector_as(table, INT64, 2, 0, 1)[0]
    if np.uint64(step) >= STEPS:
        return 1
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

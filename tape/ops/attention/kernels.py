"""Kernels of attention: the softmax of the rows of scores of which some are masked, and its gradient.

A masked score becomes -inf, whose exponential is +0, so that the sum of a row has the order that it has without a
mask. A causal row ends with the last key that it sees, or with the end of that key's bundle, which is faster than
its parts: the lanes of the sum would only be given +0 behind it.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ...numerics.engine.intrinsics import real, word
from ...numerics.engine.kernel import kernel, share, vector, vector_as
from ...numerics.math import elementary
from ...numerics.simd.lanes import below, inlined
from ...numerics.simd.operations import constant, constants, float_of, select
from ...numerics.simd.sums import sum_terms
from ...numerics.simd.vectors import (
    LANES,
    bundle,
    combine,
    flags,
    flags_part,
    load_bundle,
    load_part,
    rolled,
    store,
    store_part,
    transform,
)
from ..reduce.kernels.softmax import row_max

# Positions of the words: rows of scores and keys in each; the scale; queries of each matrix of scores; whether a
# query sees no keys behind its own position; rows of the mask, 0 if there is none. Row r has row r mod that.
ROWS, KEYS, SCALE, QUERIES, CAUSAL, MASK_ROWS = range(6)

BOOL = np.uint8(0)


@inlined
def _product(a, b):
    return a * b


@inlined
def _numerator(t, m):
    """``exp(t - m)``; what becomes +0 is chosen, not computed, as underflow costs processors many cycles."""
    shifted = t - m
    zero = constant(shifted, 0.0)
    gone = shifted < constants(shifted).exp_zero
    return select(gone, zero, elementary.exp(select(gone, zero, shifted)))


@inlined
def _scaled_numerator(x, numbers):
    m, scale = numbers
    return _numerator(x * scale, m)


@inlined
def _quotient(x, s):
    return x / s


@inlined
def _scaled(out, x, mask, scale, seen):
    """``x * scale`` of the first ``seen`` elements where the mask, if there is one, holds; -inf elsewhere."""
    whole, lowest = out.size - out.size % bundle(out), constant(scale, -np.inf)
    for i in range(0, whole, bundle(out)):
        rolled()
        t = load_bundle(x, i) * scale
        store(out, i, select(flags(mask, i, t), select(below(t, seen - i), t, lowest), lowest))
    for i in range(whole, out.size, LANES):
        rolled()
        left = out.size - i
        t = load_part(x, i, left) * scale
        store_part(out, i, left, select(flags_part(mask, i, left), select(below(t, seen - i), t, lowest), lowest))


@inlined
def _row(out, x, mask, scale, seen, zero):
    """The weights of one row, and the sum by which they were divided."""
    if mask is None and seen == out.size and scale > zero:  # which keeps the order of the scores, even when they round
        s = sum_terms(_scaled_numerator, x, (row_max(x, zero) * scale, scale), out, zero)
    else:
        _scaled(out, x, mask, scale, seen)
        s = sum_terms(_numerator, out, row_max(out, zero), out, zero)
    transform(_quotient, out, out, s)
    return s


@inlined
def _fill(out, start, value):
    for i in range(start, out.size):
        out[i] = value


@inlined
def _clear(mask, out, zero):
    for i in range(out.size):
        out[i] = select(mask[i] != 0, out[i], zero)


@kernel
def masked_softmax(table, ints, part, parts):
    """``exp(t - m) / s`` over the kept elements of each row of ``t = x * scale``, else +0; arrays: out, x, mask.

    A sum that is NaN, because of a NaN or as nothing is kept, makes every quotient NaN: what is masked is cleared.
    """
    start, rows = share(word(ints, ROWS), part, parts)
    keys, queries, mask_rows = word(ints, KEYS), word(ints, QUERIES), word(ints, MASK_ROWS)
    scale, zero = real(table, float_of(word(ints, SCALE))), real(table, 0.0)
    for r in range(start, start + rows):
        whole = vector(table, 0, r * keys, keys)
        seen = min(r % queries + 1, keys) if word(ints, CAUSAL) else keys
        width = min(-(-seen // bundle(whole)) * bundle(whole), keys)
        out, x = vector(table, 0, r * keys, width), vector(table, 1, r * keys, width)
        if mask_rows:
            mask = vector_as(table, BOOL, 2, r % mask_rows * keys, width)
            s = _row(out, x, mask, scale, seen, zero)
            if s != s:
                _clear(mask, out, zero)
        else:
            s = _row(out, x, None, scale, seen, zero)
        _fill(whole, width if s == s else seen, zero)
    return 0


@inlined
def _slope(g, w, total, scale):
    return w * (g - total) * scale


@kernel
def scaled_softmax_grad(table, ints, part, parts):
    """``w * (g - sum(g * w)) * scale`` of each row; arrays: out, g, w; ints: rows, n, scale."""
    start, rows = share(word(ints, 0), part, parts)
    n, scale, zero = word(ints, 1), real(table, float_of(word(ints, 2))), real(table, 0.0)
    for r in range(start, start + rows):
        out, g, w = vector(table, 0, r * n, n), vector(table, 1, r * n, n), vector(table, 2, r * n, n)
        combine(_slope, out, g, w, sum_terms(_product, g, w, None, zero), scale)
    return 0

"""Normalisation down columns, where the channels are the last axis, and with statistics that are given.

Sums are in the order of column sums: chains in blocks of 256. ``weight`` and ``bias`` say which array of the table
holds them; 0: there is none.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.simd.lanes import filled, inlined
from ....numerics.simd.operations import float_of, sqrt
from ....numerics.simd.sums import CHAIN_BLOCK, squared_difference
from ....numerics.simd.vectors import LANES, load_part, rolled, store_part
from .grad import slope
from .rows import affine, affine_of
from .shape import parameter


@inlined
def _square_sums(x, mean, j, left, rows, columns, zero):
    """``sum_r (x[r, j] - mean[j])**2`` of up to sixteen columns from ``j`` on."""
    total, m = filled(zero, LANES), load_part(mean, j, left)
    for first in range(0, rows, CHAIN_BLOCK):
        chain = filled(zero, LANES)
        for r in range(first, min(first + CHAIN_BLOCK, rows)):
            rolled()
            chain = chain + squared_difference(load_part(x, r * columns + j, left), m)
        total = total + chain
    return total


@kernel
def inverse_deviations(table, ints, part, parts):
    """``out[j] = 1 / sqrt(sum_r (x[r, j] - mean[j])**2 / rows + eps)``; ints: rows, columns, eps."""
    rows, columns, eps = word(ints, 0), word(ints, 1), real(table, float_of(word(ints, 2)))
    start, count = share(columns, part, parts)
    out, x, mean = vector(table, 0, 0, columns), vector(table, 1, 0, rows * columns), vector(table, 2, 0, columns)
    for j in range(start, start + count, LANES):
        left = start + count - j
        variance = _square_sums(x, mean, j, left, rows, columns, real(table, 0.0)) / real(table, rows)
        store_part(out, j, left, real(table, 1.0) / sqrt(variance + eps))
    return 0


@kernel
def apply_statistics(table, ints, part, parts):
    """``out[a, c, i] = ((x[a, c, i] - mean[c]) * inv[c]) * weight[c] + bias[c]``; arrays: out, x, mean, inv, …

    ints: outer, channels, inner, weight, bias.
    """
    outer, channels, inner = word(ints, 0), word(ints, 1), word(ints, 2)
    weight, bias, one, none = word(ints, 3), word(ints, 4), real(table, 1.0), real(table, -0.0)
    means, invs = vector(table, 2, 0, channels), vector(table, 3, 0, channels)
    if inner == 1:
        start, count = share(outer, part, parts)
        for a in range(start, start + count):
            out, x = vector(table, 0, a * channels, channels), vector(table, 1, a * channels, channels)
            affine_of(table, out, x, means, invs, weight, bias, 0)
        return 0
    start, count = share(outer * channels, part, parts)
    for i in range(start, start + count):
        c = i % channels
        w, b = parameter(table, weight, c, one), parameter(table, bias, c, none)
        affine(vector(table, 0, i * inner, inner), vector(table, 1, i * inner, inner), means[c], invs[c], w, b)
    return 0


@inlined
def _sums(dy, x, w, m, inv, j, left, rows, columns, zero):
    """The sums of ``h = dy * w`` and of ``h * ((x - m) * inv)`` of up to sixteen columns from ``j`` on."""
    total, products = filled(zero, LANES), filled(zero, LANES)
    for first in range(0, rows, CHAIN_BLOCK):
        one, other = filled(zero, LANES), filled(zero, LANES)
        for r in range(first, min(first + CHAIN_BLOCK, rows)):
            rolled()
            h = load_part(dy, r * columns + j, left) * w
            one = one + h
            other = other + h * ((load_part(x, r * columns + j, left) - m) * inv)
        total, products = total + one, products + other
    return total, products


@kernel
def column_slopes(table, ints, part, parts):
    """``out = ((h - mean(h)) - x' * mean(h * x')) * inv``, ``h = dy * weight``, ``x' = (x - mean) * inv``.

    Means are down columns. Arrays: out, dy, x, mean, inv, weight where given; ints: rows, columns, weight.
    """
    rows, columns, weight = word(ints, 0), word(ints, 1), word(ints, 2)
    start, count = share(columns, part, parts)
    area = rows * columns
    out, dy, x = vector(table, 0, 0, area), vector(table, 1, 0, area), vector(table, 2, 0, area)
    zero, n, w = real(table, 0.0), real(table, rows), filled(real(table, 1.0), LANES)
    for j in range(start, start + count, LANES):
        left = start + count - j
        m, inv = load_part(vector(table, 3, 0, columns), j, left), load_part(vector(table, 4, 0, columns), j, left)
        if weight:
            w = load_part(vector(table, weight, 0, columns), j, left)
        total, products = _sums(dy, x, w, m, inv, j, left, rows, columns, zero)
        mean_h, mean_p = total / n, products / n
        for r in range(rows):
            rolled()
            i = r * columns + j
            dx = slope(load_part(dy, i, left), load_part(x, i, left), w, m, inv, mean_h, mean_p)
            store_part(out, i, left, dx)
    return 0

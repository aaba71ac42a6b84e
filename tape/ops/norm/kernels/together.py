"""Sums along several rows at once, in one pass over each: their chains need not wait for each other.

The runs of such rows are whole vectors of the contract's lanes, so elements are read where they lie.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import vector
from ....numerics.simd.lanes import filled, fold, inlined
from ....numerics.simd.sums import ROW_BLOCK
from ....numerics.simd.vectors import LANES, load_part, rolled
from .shape import LENGTH, PITCH, STRIDE, Q, elements, parameter

FOUR = 4
"""Rows whose sums are computed at once: as many chains as an addition takes cycles."""


@inlined
def _run(ints, weight):
    """Elements of a row that lie side by side and have one weight, if there are weights (not 0)."""
    whole = weight == 0 and word(ints, PITCH) == word(ints, LENGTH)
    return elements(ints) if whole else word(ints, LENGTH)


@inlined
def are_whole(ints, weight):
    """Whether the runs of rows are whole vectors."""
    return _run(ints, weight) % LANES == 0


@inlined
def four_sums(term, table, k, ints, r, numbers, sums):
    """The sums along `FOUR` rows from ``r`` on of ``term(x, number)``, each with its number, in the k-th array."""
    n, run, zero, stride = elements(ints), _run(ints, 0), real(table, 0.0), word(ints, STRIDE)
    p, q, s, t = numbers[0], numbers[1], numbers[2], numbers[3]
    a, b, c, d = filled(zero, LANES), filled(zero, LANES), filled(zero, LANES), filled(zero, LANES)
    sums[0], sums[1], sums[2], sums[3] = zero, zero, zero, zero
    at, done, segment, offset = 0, 0, 0, 0
    while at < n:
        count = min(run - offset, ROW_BLOCK - done)
        place = r * stride + segment * word(ints, PITCH) + offset
        w, x = vector(table, k, place, count), vector(table, k, place + stride, count)
        y, z = vector(table, k, place + 2 * stride, count), vector(table, k, place + 3 * stride, count)
        for i in range(0, count, LANES):
            rolled()
            a = a + term(load_part(w, i, LANES), p)
            b = b + term(load_part(x, i, LANES), q)
            c = c + term(load_part(y, i, LANES), s)
            d = d + term(load_part(z, i, LANES), t)
        at, done, offset = at + count, done + count, offset + count
        if offset == run:
            segment, offset = segment + 1, 0
        if done == ROW_BLOCK or at == n:
            sums[0], sums[1] = sums[0] + fold(a), sums[1] + fold(b)
            sums[2], sums[3] = sums[2] + fold(c), sums[3] + fold(d)
            a, b, c, d = filled(zero, LANES), filled(zero, LANES), filled(zero, LANES), filled(zero, LANES)
            done = 0


@inlined
def two_slope_sums(table, weight, ints, r, number, next_number, means, invs, sums, products):
    """Of two rows from ``r`` on the sums of ``h = dy * weight`` and of ``h`` times the normalised row.

    Arrays: out, dy, x; a run has one weight.
    """
    n, run, zero, stride = elements(ints), _run(ints, weight), real(table, 0.0), word(ints, STRIDE)
    one, mean, inv, other_mean, other_inv = real(table, 1.0), means[0], invs[0], means[1], invs[1]
    a, b, c, d = filled(zero, LANES), filled(zero, LANES), filled(zero, LANES), filled(zero, LANES)
    sums[0], sums[1], products[0], products[1] = zero, zero, zero, zero
    at, done, segment, offset = 0, 0, 0, 0
    while at < n:
        count = min(run - offset, ROW_BLOCK - done)
        place = r * stride + segment * word(ints, PITCH) + offset
        v = parameter(table, weight, number + segment * word(ints, Q), one)
        w = parameter(table, weight, next_number + segment * word(ints, Q), one)
        dy, x = vector(table, 1, place, count), vector(table, 2, place, count)
        next_dy, next_x = vector(table, 1, place + stride, count), vector(table, 2, place + stride, count)
        for i in range(0, count, LANES):
            rolled()
            h, g = load_part(dy, i, LANES) * v, load_part(next_dy, i, LANES) * w
            a, b = a + h, b + g
            c = c + h * ((load_part(x, i, LANES) - mean) * inv)
            d = d + g * ((load_part(next_x, i, LANES) - other_mean) * other_inv)
        at, done, offset = at + count, done + count, offset + count
        if offset == run:
            segment, offset = segment + 1, 0
        if done == ROW_BLOCK or at == n:
            sums[0], sums[1] = sums[0] + fold(a), sums[1] + fold(b)
            products[0], products[1] = products[0] + fold(c), products[1] + fold(d)
            a, b, c, d = filled(zero, LANES), filled(zero, LANES), filled(zero, LANES), filled(zero, LANES)
            done = 0

"""Normalisation of rows: elements less their mean, over their standard deviation, then an affine map.

A row is what shares a mean and a variance. It need not lie together: row ``r`` begins at ``r * stride`` and is made
of ``segments`` runs of ``length`` neighbours, ``pitch`` apart. Run ``s`` of it has the parameter (weight, bias) of
number ``(r * p + s * q) mod parameters``. So one kernel normalises the positions of a layer (runs of one element,
each with a parameter of its own), of a group of channels, and of a channel over a batch.

`SHAPE` names the words that say so. Then follow which array is the weight (0: there is none), whether the mean is taken
away, eps, and which array has the statistics of all rows, where these were computed before (0: they were not). Sums are
in the order of row sums, over the elements of a row in the order of its runs.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import real, stack, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import float_of, sqrt
from ....numerics.simd.sums import ROW_BLOCK, element, squared_difference, sum_terms
from ....numerics.simd.vectors import LANES, bundle, load_bundle, load_part, rolled, store, store_part, transform
from .shape import (
    BIAS,
    CENTRED,
    EPS,
    LENGTH,
    PITCH,
    ROWS,
    SEGMENTS,
    STATISTICS,
    STRIDE,
    WEIGHT,
    Q,
    elements,
    first_parameter,
    following,
    own,
    parameter,
)  # fmt: skip
from .together import FOUR, are_whole, four_sums

CACHED = 4096
"""Elements of the rows that are worked on at once."""

AT_ONCE = 64
"""The most rows that are worked on at once, a multiple of the lanes."""


@inlined
def _product(x, y):
    return x * y


@inlined
def gathered(table, k, weight, ints, r, number, first, count, buffer):
    """Elements of a row side by side, times their weights: in place if they lie so and there is no weight (0)."""
    length, pitch, base = word(ints, LENGTH), word(ints, PITCH), r * word(ints, STRIDE)
    if weight == 0 and pitch == length:
        return vector(table, k, base + first, count)
    i, s, offset, block = 0, first // length, first % length, buffer[:count]
    while i < count:
        run = min(length - offset, count - i)
        w = parameter(table, weight, number + s * word(ints, Q), real(table, 1.0))
        transform(_product, block[i : i + run], vector(table, k, base + s * pitch + offset, run), w)
        i, s, offset = i + run, s + 1, 0
    return block


@inlined
def _sum_along(term, table, k, ints, r, y, buffer):
    """The sum along a row of ``term(x, y)`` for a number y."""
    n, zero = elements(ints), real(table, 0.0)
    if word(ints, PITCH) == word(ints, LENGTH):
        return sum_terms(term, vector(table, k, r * word(ints, STRIDE), n), y, None, zero)
    total = zero
    for first in range(0, n, ROW_BLOCK):
        block = gathered(table, k, 0, ints, r, 0, first, min(ROW_BLOCK, n - first), buffer)
        total = total + sum_terms(term, block, y, None, zero)
    return total


@inlined
def at_once(ints):
    """How many rows are worked on at once: as many as stay in the cache, at least `FOUR` and at most `AT_ONCE`.

    Their sums are independent, so that the processor need not wait for one before it begins the next.
    """
    return min(AT_ONCE, max(CACHED // max(elements(ints), 1) + 1, FOUR))


@inlined
def _sums_of_rows(term, table, k, ints, start, stop, numbers, sums, buffer):
    """For each of some rows the sum of ``term(x, number)`` with the row's number; sums may be the numbers."""
    r = start
    if are_whole(ints, 0):
        while r + FOUR <= stop:
            four_sums(term, table, k, ints, r, numbers[r - start :], sums[r - start :])
            r += FOUR
    while r < stop:
        sums[r - start] = _sum_along(term, table, k, ints, r, numbers[r - start], buffer)
        r += 1


@inlined
def statistics(table, k, ints, start, stop, buffer, means, invs):
    """The means of up to `AT_ONCE` rows (+0 unless they are taken away) and the inverses of their deviations."""
    if word(ints, STATISTICS):
        for r in range(start, stop):
            means[r - start] = parameter(table, word(ints, STATISTICS), r, real(table, 0.0))
            invs[r - start] = parameter(table, word(ints, STATISTICS), word(ints, ROWS) + r, real(table, 0.0))
        return
    zero, n = real(table, 0.0), real(table, elements(ints))
    for r in range(start, stop):
        means[r - start] = zero
    if word(ints, CENTRED):
        _sums_of_rows(element, table, k, ints, start, stop, means, means, buffer)
    if word(ints, CENTRED):
        divide(means, n)
    _sums_of_rows(squared_difference, table, k, ints, start, stop, means, invs, buffer)
    divide(invs, n)
    eps = real(table, float_of(word(ints, EPS)))
    for i in range(0, AT_ONCE, LANES):
        store_part(invs, i, LANES, real(table, 1.0) / sqrt(load_part(invs, i, LANES) + eps))


@inlined
def divide(sums, n):
    """The sums of the rows worked on at once over a number."""
    for i in range(0, AT_ONCE, LANES):
        store_part(sums, i, LANES, load_part(sums, i, LANES) / n)


@inlined
def affine(out, x, mean, inv, weight, bias):
    """``((x - mean) * inv) * weight + bias``; what is no array is one number for all elements."""
    whole = out.size - out.size % bundle(out)
    for i in range(0, whole, bundle(out)):
        rolled()
        y = ((load_bundle(x, i) - load_bundle(mean, i)) * load_bundle(inv, i)) * load_bundle(weight, i)
        store(out, i, y + load_bundle(bias, i))
    for i in range(whole, out.size, LANES):
        rolled()
        left = out.size - i
        y = ((load_part(x, i, left) - load_part(mean, i, left)) * load_part(inv, i, left)) * load_part(weight, i, left)
        store_part(out, i, left, y + load_part(bias, i, left))


@inlined
def affine_of(table, out, x, mean, inv, weight, bias, i):
    """`affine` with the weights and biases from number ``i`` on, of which both, one or none is given."""
    n, one, none = out.size, real(table, 1.0), real(table, -0.0)  # y + -0 is y, whatever the sign of its zeros
    if weight and bias:
        affine(out, x, mean, inv, vector(table, weight, i, n), vector(table, bias, i, n))
    elif weight:
        affine(out, x, mean, inv, vector(table, weight, i, n), none)
    elif bias:
        affine(out, x, mean, inv, one, vector(table, bias, i, n))
    else:
        affine(out, x, mean, inv, one, none)


@inlined
def _write(table, ints, r, number, mean, inv):
    """One row of `normalize`."""
    base, segments, length = r * word(ints, STRIDE), word(ints, SEGMENTS), word(ints, LENGTH)
    weight, bias = word(ints, WEIGHT), word(ints, BIAS)
    if own(ints):
        out, x = vector(table, 0, base, segments), vector(table, 1, base, segments)
        affine_of(table, out, x, mean, inv, weight, bias, number)
        return
    for s in range(segments):
        at, i = base + s * word(ints, PITCH), number + s * word(ints, Q)
        w, b = parameter(table, weight, i, real(table, 1.0)), parameter(table, bias, i, real(table, -0.0))
        affine(vector(table, 0, at, length), vector(table, 1, at, length), mean, inv, w, b)


@kernel
def normalize(table, ints, part, parts):
    """``out = ((x - mean) * inv) * weight + bias``; arrays: out, x, statistics, weight and bias where given.

    ints: `SHAPE`, weight, centred, eps, statistics, bias.
    """
    start, rows = share(word(ints, ROWS), part, parts)
    stop, step, number = start + rows, at_once(ints), first_parameter(ints, start)
    buffer, means, invs = stack(table, ROW_BLOCK), stack(table, AT_ONCE), stack(table, AT_ONCE)
    for first in range(start, stop, step):
        last = min(first + step, stop)
        statistics(table, 1, ints, first, last, buffer, means, invs)
        for r in range(first, last):
            _write(table, ints, r, number, means[r - first], invs[r - first])
            number = following(ints, number)
    return 0


@kernel
def row_statistics(table, ints, part, parts):
    """``out[0, r]`` is the mean of a row, ``out[1, r]`` the inverse of its deviation.

    Arrays: out, x; ints: `SHAPE`, 0, centred, eps, 0.
    """
    all_rows = word(ints, ROWS)
    start, rows = share(all_rows, part, parts)
    stop, step, out = start + rows, at_once(ints), vector(table, 0, 0, 2 * all_rows)
    buffer, means, invs = stack(table, ROW_BLOCK), stack(table, AT_ONCE), stack(table, AT_ONCE)
    for first in range(start, stop, step):
        last = min(first + step, stop)
        statistics(table, 1, ints, first, last, buffer, means, invs)
        for r in range(first, last):
            out[r], out[all_rows + r] = means[r - first], invs[r - first]
    return 0

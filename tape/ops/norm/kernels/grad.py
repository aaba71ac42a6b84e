"""The gradients of normalised rows, by the array and by the weights; rows are those of `norm`."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import real, stack, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.simd.lanes import accumulated, below, filled, fold, inlined
from ....numerics.simd.operations import select
from ....numerics.simd.sums import CHAIN_BLOCK, ROW_BLOCK
from ....numerics.simd.vectors import LANES, bundle, bundle_of, load_bundle, load_part, rolled, store, store_part
from .rows import AT_ONCE, at_once, divide, gathered, statistics
from .shape import (
    CENTRED,
    LENGTH,
    PITCH,
    ROWS,
    SEGMENTS,
    STRIDE,
    WEIGHT,
    Q,
    elements,
    first_parameter,
    following,
    own,
    parameter,
)  # fmt: skip
from .together import are_whole, two_slope_sums


@inlined
def _block_sums(dy, x, weight, mean, inv, zero):
    """The sums of ``h = dy * weight`` and of ``h * ((x - mean) * inv)`` over one block; weight may be a number."""
    sums, products = filled(zero, LANES), filled(zero, LANES)
    whole = dy.size - dy.size % bundle(dy)
    for i in range(0, whole, bundle(dy)):
        rolled()
        h = load_bundle(dy, i) * load_bundle(weight, i)
        sums = accumulated(sums, h)
        products = accumulated(products, h * ((load_bundle(x, i) - mean) * inv))
    for i in range(whole, dy.size, LANES):
        rolled()
        left = dy.size - i
        h, mask = load_part(dy, i, left) * load_part(weight, i, left), below(sums, left)
        sums = select(mask, sums + h, sums)
        products = select(mask, products + h * ((load_part(x, i, left) - mean) * inv), products)
    return fold(sums), fold(products)


@inlined
def _sums(table, weight, ints, r, number, mean, inv, h_buffer, x_buffer):
    """The sums along a row of ``h = dy * weight`` and of ``h`` times the normalised row; arrays: out, dy, x."""
    zero, n, base = real(table, 0.0), elements(ints), r * word(ints, STRIDE)
    total, products = zero, zero
    for first in range(0, n, ROW_BLOCK):
        count = min(ROW_BLOCK, n - first)
        if weight and own(ints):
            dy, x = vector(table, 1, base + first, count), vector(table, 2, base + first, count)
            w = vector(table, weight, number + first, count)
            one, other = _block_sums(dy, x, w, mean, inv, zero)
        else:
            h = gathered(table, 1, weight, ints, r, number, first, count, h_buffer)
            x = gathered(table, 2, 0, ints, r, number, first, count, x_buffer)
            one, other = _block_sums(h, x, real(table, 1.0), mean, inv, zero)
        total, products = total + one, products + other
    return total, products


@inlined
def _sums_of_rows(table, weight, ints, first, last, number, means, invs, totals, products, h_buffer, x_buffer):
    """`_sums` of some rows, of which the first one has the parameter ``number``; the number behind the last one."""
    r, together = first, are_whole(ints, weight)
    while r < last:
        i, after = r - first, following(ints, number)
        if together and r + 2 <= last:
            two_slope_sums(table, weight, ints, r, number, after, means[i:], invs[i:], totals[i:], products[i:])
            r, number = r + 2, following(ints, after)
        else:
            totals[i], products[i] = _sums(table, weight, ints, r, number, means[i], invs[i], h_buffer, x_buffer)
            r, number = r + 1, after
    return number


@inlined
def slope(dy, x, weight, mean, inv, mean_h, mean_p):
    """``((dy * weight - mean_h) - x' * mean_p) * inv`` with ``x' = (x - mean) * inv``."""
    return (((dy * weight) - mean_h) - ((x - mean) * inv) * mean_p) * inv


@inlined
def _slopes(table, at, n, weight, mean, inv, mean_h, mean_p):
    """`slope` of ``n`` neighbours from ``at`` on; weight may be a number; arrays: out, dy, x."""
    out, dy, x = vector(table, 0, at, n), vector(table, 1, at, n), vector(table, 2, at, n)
    whole = n - n % bundle(out)
    for i in range(0, whole, bundle(out)):
        rolled()
        w = load_bundle(weight, i)
        store(out, i, slope(load_bundle(dy, i), load_bundle(x, i), w, mean, inv, mean_h, mean_p))
    for i in range(whole, n, LANES):
        rolled()
        left = n - i
        w = load_part(weight, i, left)
        store_part(out, i, left, slope(load_part(dy, i, left), load_part(x, i, left), w, mean, inv, mean_h, mean_p))


@inlined
def _write_slopes(table, ints, r, number, mean, inv, mean_h, mean_p):
    """One row of `normalize_grad`."""
    base, segments, weight = r * word(ints, STRIDE), word(ints, SEGMENTS), word(ints, WEIGHT)
    if weight and own(ints):
        _slopes(table, base, segments, vector(table, weight, number, segments), mean, inv, mean_h, mean_p)
        return
    for s in range(segments):
        w = parameter(table, weight, number + s * word(ints, Q), real(table, 1.0))
        _slopes(table, base + s * word(ints, PITCH), word(ints, LENGTH), w, mean, inv, mean_h, mean_p)


@kernel
def normalize_grad(table, ints, part, parts):
    """``out = ((h - mean(h)) - x' * mean(h * x')) * inv``, ``h = dy * weight``, ``x' = (x - mean) * inv``.

    Arrays: out, dy, x, statistics and weight where given; ints: `SHAPE`, weight, centred, eps, statistics.
    """
    start, rows = share(word(ints, ROWS), part, parts)
    stop, step, number, weight = start + rows, at_once(ints), first_parameter(ints, start), word(ints, WEIGHT)
    h_buffer, x_buffer = stack(table, ROW_BLOCK), stack(table, ROW_BLOCK)
    means, invs, totals, products = (
        stack(table, AT_ONCE),
        stack(table, AT_ONCE),
        stack(table, AT_ONCE),
        stack(table, AT_ONCE),
    )
    for first in range(start, stop, step):
        last, begin = min(first + step, stop), number
        statistics(table, 2, ints, first, last, x_buffer, means, invs)
        number = _sums_of_rows(
            table, weight, ints, first, last, number, means, invs, totals, products, h_buffer, x_buffer
        )
        if not word(ints, CENTRED):
            totals[:] = real(table, 0.0)
        divide(totals, real(table, elements(ints)))
        divide(products, real(table, elements(ints)))
        number = begin
        for i in range(last - first):
            _write_slopes(table, ints, first + i, number, means[i], invs[i], totals[i], products[i])
            number = following(ints, number)
    return 0


@kernel
def normalize_weight_grad(table, ints, part, parts):
    """``out[r] = sum dy * ((x - mean) * inv)`` along rows.

    Arrays: out, dy, x, statistics where given; ints: `SHAPE`, 0, centred, eps, statistics.
    """
    start, rows = share(word(ints, ROWS), part, parts)
    stop, step, out = start + rows, at_once(ints), vector(table, 0, 0, word(ints, ROWS))
    dy_buffer, x_buffer = stack(table, ROW_BLOCK), stack(table, ROW_BLOCK)
    means, invs, totals = stack(table, AT_ONCE), stack(table, AT_ONCE), stack(table, AT_ONCE)
    for first in range(start, stop, step):
        last = min(first + step, stop)
        statistics(table, 2, ints, first, last, x_buffer, means, invs)
        _sums_of_rows(table, 0, ints, first, last, 0, means, invs, totals, out[first:], dy_buffer, x_buffer)
    return 0


@inlined
def _bundle_of_columns(dy, x, means, invs, j, columns, zero):
    """The sums of ``dy * ((x - mean) * inv)`` down a bundle of columns from ``j`` on."""
    total = bundle_of(x, zero)
    for first in range(0, means.size, CHAIN_BLOCK):
        chain = bundle_of(x, zero)
        for r in range(first, min(first + CHAIN_BLOCK, means.size)):
            rolled()
            i = r * columns + j
            chain = chain + load_bundle(dy, i) * ((load_bundle(x, i) - means[r]) * invs[r])
        total = total + chain
    return total


@inlined
def _some_columns(dy, x, means, invs, j, left, columns, zero):
    """The same for sixteen columns, or the ``left`` ones that there are."""
    total = filled(zero, LANES)
    for first in range(0, means.size, CHAIN_BLOCK):
        chain = filled(zero, LANES)
        for r in range(first, min(first + CHAIN_BLOCK, means.size)):
            rolled()
            i = r * columns + j
            chain = chain + load_part(dy, i, left) * ((load_part(x, i, left) - means[r]) * invs[r])
        total = total + chain
    return total


@kernel
def column_weight_grad(table, ints, part, parts):
    """``out[j] = sum_r dy[r, j] * ((x[r, j] - mean[r]) * inv[r])``, chains in blocks of 256.

    Arrays: out, dy, x, `row_statistics`; ints: rows, columns.
    """
    rows, columns, zero = word(ints, 0), word(ints, 1), real(table, 0.0)
    start, count = share(columns, part, parts)
    out, dy, x = vector(table, 0, 0, columns), vector(table, 1, 0, rows * columns), vector(table, 2, 0, rows * columns)
    means, invs = vector(table, 3, 0, rows), vector(table, 3, rows, rows)
    whole = start + count - count % bundle(x)
    for j in range(start, whole, bundle(x)):
        store(out, j, _bundle_of_columns(dy, x, means, invs, j, columns, zero))
    for j in range(whole, start + count, LANES):
        left = start + count - j
        store_part(out, j, left, _some_columns(dy, x, means, invs, j, left, columns, zero))
    return 0

"""Sums in the fixed order of the bit contract: sixteen lanes along rows, one chain down columns.

*Along rows* (the reduced elements lie next to each other): blocks of 4096; inside a block element ``i`` is
added to lane ``i mod 16`` in ascending order, the lanes start at +0 and are folded by
``lane[l] += lane[l + h]`` for h = 8, 4, 2, 1. *Down columns*: blocks of 256, inside a block one chain from
+0. In both the total is the first block's sum, to which the others are added in order.

No sum that starts at +0 ever becomes -0, so the total may start at +0 as well.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ..engine.intrinsics import real, word
from ..engine.kernel import kernel, share, vector
from .lanes import accumulated, below, filled, fold, inlined
from .operations import select
from .vectors import LANES, bundle, bundle_of, load_bundle, load_part, rolled, store, store_part

ROW_BLOCK = 4096
CHAIN_BLOCK = 256


@inlined
def _block_sum(term, x, y, out, zero, first, stop):
    """The sum of one block of terms."""
    lanes, step = filled(zero, LANES), bundle(x)
    whole = stop - (stop - first) % step
    for i in range(first, whole, step):
        rolled()
        terms = term(load_bundle(x, i), load_bundle(y, i))
        store(out, i, terms)
        lanes = accumulated(lanes, terms)
    for i in range(whole, stop, LANES):
        rolled()
        left = stop - i
        terms = term(load_part(x, i, left), load_part(y, i, left))
        store_part(out, i, left, terms)
        lanes = select(below(lanes, left), lanes + terms, lanes)
    return fold(lanes)


@inlined
def sum_terms(term, x, y, out, zero):
    """The sum along a row of ``term(x[i], y[i])``; y may be a scalar; terms go to ``out`` unless it is None."""
    total = zero
    for first in range(0, x.size, ROW_BLOCK):
        total = total + _block_sum(term, x, y, out, zero, first, min(first + ROW_BLOCK, x.size))
    return total


@inlined
def element(x, _):
    """``x``: the term of a plain sum."""
    return x


@inlined
def _square(x, _):
    return x * x


@inlined
def squared_difference(x, y):
    """``(x - y) ** 2``: the term of a sum of squares about a mean."""
    difference = x - y
    return difference * difference


@inlined
def row_sum(x, zero):
    """The sum of a contiguous vector; +0 if it is empty."""
    return sum_terms(element, x, zero, None, zero)


@inlined
def square_sum(x, zero):
    """The sum of the squares of a contiguous vector, rounded before they are added; +0 if it is empty."""
    return sum_terms(_square, x, zero, None, zero)


@kernel
def sum_rows(table, ints, part, parts):
    """``out[r] = sum_i x[r, i]``; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n = word(ints, 1)
    out = vector(table, 0, start, rows)
    for r in range(rows):
        out[r] = row_sum(vector(table, 1, (start + r) * n, n), real(table, 0.0))
    return 0


@kernel
def mean_rows(table, ints, part, parts):
    """``out[r] = sum_i x[r, i] / n``; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n = word(ints, 1)
    out = vector(table, 0, start, rows)
    for r in range(rows):
        out[r] = row_sum(vector(table, 1, (start + r) * n, n), real(table, 0.0)) / real(table, n)
    return 0


@kernel
def mean_squared_difference(table, ints, part, parts):
    """``out = sum_i (a[i] - b[i])**2 / n``, the squares rounded before they are added; ints: n."""
    _, mine = share(1, part, parts)
    n = word(ints, 0)
    if mine:
        a, b = vector(table, 1, 0, n), vector(table, 2, 0, n)
        total = sum_terms(squared_difference, a, b, None, real(table, 0.0))
        vector(table, 0, 0, 1)[0] = total / real(table, n)
    return 0


@inlined
def _bundle_of_columns(x, j, rows, columns, zero):
    """The sums of a bundle of columns from ``j`` on."""
    total = bundle_of(x, zero)
    for first in range(0, rows, CHAIN_BLOCK):
        chain = bundle_of(x, zero)
        for r in range(first, min(first + CHAIN_BLOCK, rows)):
            rolled()
            chain = chain + load_bundle(x, r * columns + j)
        total = total + chain
    return total


@inlined
def _some_columns(x, j, left, rows, columns, zero):
    """The sums of sixteen columns from ``j`` on, or of the ``left`` ones that there are."""
    total = filled(zero, LANES)
    for first in range(0, rows, CHAIN_BLOCK):
        chain = filled(zero, LANES)
        for r in range(first, min(first + CHAIN_BLOCK, rows)):
            rolled()
            chain = chain + load_part(x, r * columns + j, left)
        total = total + chain
    return total


@inlined
def _column_sums(table, ints, part, parts, divisor):
    outer, rows, columns = word(ints, 0), word(ints, 1), word(ints, 2)
    start, count = share(columns, part, parts)
    stop, zero = start + count, real(table, 0.0)
    for o in range(outer):
        out, x = vector(table, 0, o * columns, columns), vector(table, 1, o * rows * columns, rows * columns)
        step = bundle(x)
        whole = stop - count % step
        for j in range(start, whole, step):
            store(out, j, _bundle_of_columns(x, j, rows, columns, zero) / divisor)
        for j in range(whole, stop, LANES):
            store_part(out, j, stop - j, _some_columns(x, j, stop - j, rows, columns, zero) / divisor)
    return 0


@kernel
def sum_columns(table, ints, part, parts):
    """``out[o, j] = sum_r x[o, r, j]``; ints: outer, rows, columns."""
    return _column_sums(table, ints, part, parts, real(table, 1.0))


@kernel
def mean_columns(table, ints, part, parts):
    """``out[o, j] = sum_r x[o, r, j] / rows``; ints: outer, rows, columns."""
    return _column_sums(table, ints, part, parts, real(table, word(ints, 1)))

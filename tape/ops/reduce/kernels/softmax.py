"""Kernels over the rows of a matrix: softmax, its logarithm, logsumexp, and the cross-entropy of labels.

``m`` is the row's maximum, ``s`` the sum of ``exp(x - m)`` in the order of row sums.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ....numerics.engine.intrinsics import real, stack, word
from ....numerics.engine.kernel import kernel, share, vector, vector_as
from ....numerics.math import elementary
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import constant, select
from ....numerics.simd.sums import sum_terms
from ....numerics.simd.vectors import LANES, load_part, store_part, transform
from .extremes import extreme

INT64 = np.int64(0)


@inlined
def _larger(a, b):
    return select(b > a, b, a)


@inlined
def row_max(x, zero):
    """The largest element that is no NaN, -inf if there is none; which zero of two is not defined.

    Neither can be seen: a NaN makes ``s`` NaN, and with it every result of the row.
    """
    return extreme(_larger, x, constant(zero, -np.inf))


@inlined
def _shifted_exp(x, m):
    return elementary.exp(x - m)


@inlined
def _quotient(x, s):
    return x / s


@inlined
def _log_probability(x, m, log_s):
    return (x - m) - log_s


@inlined
def _slope(e, s, weight):
    return (e / s) * weight


@kernel
def softmax(table, ints, part, parts):
    """``out[r, i] = exp(x[r, i] - m) / s``; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n, zero = word(ints, 1), real(table, 0.0)
    for r in range(start, start + rows):
        out, x = vector(table, 0, r * n, n), vector(table, 1, r * n, n)
        s = sum_terms(_shifted_exp, x, row_max(x, zero), out, zero)
        transform(_quotient, out, out, s)
    return 0


@kernel
def log_softmax(table, ints, part, parts):
    """``out[r, i] = (x[r, i] - m) - log s``; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n, zero, stop = word(ints, 1), real(table, 0.0), start + rows
    maxima, logs = stack(table, LANES), stack(table, LANES)
    for first in range(start, stop, LANES):
        last = min(first + LANES, stop)
        for r in range(first, last):
            x = vector(table, 1, r * n, n)
            maxima[r - first] = row_max(x, zero)
            logs[r - first] = sum_terms(_shifted_exp, x, maxima[r - first], None, zero)
        transform(elementary.log, logs, logs)
        for r in range(first, last):
            out, x = vector(table, 0, r * n, n), vector(table, 1, r * n, n)
            transform(_log_probability, out, x, maxima[r - first], logs[r - first])
    return 0


@kernel
def logsumexp(table, ints, part, parts):
    """``out[r] = p + log(sum_i exp(x[r, i] - p))`` with p = m, or 0 if m is infinite; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n, zero, stop, out = word(ints, 1), real(table, 0.0), start + rows, vector(table, 0, 0, word(ints, 0))
    pivots, sums = stack(table, LANES), stack(table, LANES)
    for first in range(start, stop, LANES):
        last = min(first + LANES, stop)
        for r in range(first, last):
            x = vector(table, 1, r * n, n)
            m = row_max(x, zero)
            pivots[r - first] = select(m - m == zero, m, zero)
            sums[r - first] = sum_terms(_shifted_exp, x, pivots[r - first], None, zero)
        store_part(out, first, last - first, load_part(pivots, 0, LANES) + elementary.log(load_part(sums, 0, LANES)))
    return 0


@inlined
def _label(labels, r, n):
    """The label of a row, or -1 if there is no such class; negative labels are no classes."""
    return labels[r] if 0 <= labels[r] < n else -1


@inlined
def _gradient(out, label, s, weight):
    """``(softmax - onehot(label)) * weight`` of a row whose exponentials are in ``out``."""
    at_label = (out[label] / s - constant(s, 1.0)) * weight
    transform(_slope, out, out, s, weight)
    out[label] = at_label


@inlined
def _store_losses(losses, first, count, sums, shifts):
    """``log s - (x[label] - m)`` of up to sixteen rows."""
    log_s = elementary.log(load_part(sums, 0, LANES))
    store_part(losses, first, count, log_s - load_part(shifts, 0, LANES))


@kernel
def cross_entropy_rows(table, ints, part, parts):
    """``out[r] = log s - (x[r, label] - m)``; arrays: out, x, labels; ints: rows, n."""
    rows, n, zero = word(ints, 0), word(ints, 1), real(table, 0.0)
    start, count = share(rows, part, parts)
    losses, labels = vector(table, 0, 0, rows), vector_as(table, INT64, 2, 0, rows)
    sums, shifts = stack(table, LANES), stack(table, LANES)
    for first in range(start, start + count, LANES):
        last = min(first + LANES, start + count)
        for r in range(first, last):
            label, x = _label(labels, r, n), vector(table, 1, r * n, n)
            if label < 0:
                return r + 1
            m = row_max(x, zero)
            sums[r - first], shifts[r - first] = sum_terms(_shifted_exp, x, m, None, zero), x[label] - m
        _store_losses(losses, first, last - first, sums, shifts)
    return 0


@kernel
def cross_entropy_grad(table, ints, part, parts):
    """``out = (softmax(x) - onehot(label)) * (g / rows)``; arrays: out, x, labels, g; ints: rows, n."""
    rows, n, zero = word(ints, 0), word(ints, 1), real(table, 0.0)
    start, count = share(rows, part, parts)
    labels, weight = vector_as(table, INT64, 2, 0, rows), vector(table, 3, 0, 1)[0] / real(table, rows)
    for r in range(start, start + count):
        label, out, x = _label(labels, r, n), vector(table, 0, r * n, n), vector(table, 1, r * n, n)
        if label < 0:
            return r + 1
        s = sum_terms(_shifted_exp, x, row_max(x, zero), out, zero)
        _gradient(out, label, s, weight)
    return 0


@kernel
def cross_entropy_rows_with_grad(table, ints, part, parts):
    """`cross_entropy_rows` and `cross_entropy_grad` in one pass; arrays: losses, grad, x, labels, g; ints: rows, n."""
    rows, n, zero = word(ints, 0), word(ints, 1), real(table, 0.0)
    start, count = share(rows, part, parts)
    losses, labels = vector(table, 0, 0, rows), vector_as(table, INT64, 3, 0, rows)
    sums, shifts, weight = stack(table, LANES), stack(table, LANES), vector(table, 4, 0, 1)[0] / real(table, rows)
    for first in range(start, start + count, LANES):
        last = min(first + LANES, start + count)
        for r in range(first, last):
            label, out, x = _label(labels, r, n), vector(table, 1, r * n, n), vector(table, 2, r * n, n)
            if label < 0:
                return r + 1
            m = row_max(x, zero)
            shifts[r - first] = x[label] - m
            s = sum_terms(_shifted_exp, x, m, out, zero)
            sums[r - first] = s
            _gradient(out, label, s, weight)
        _store_losses(losses, first, last - first, sums, shifts)
    return 0

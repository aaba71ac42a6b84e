"""Kernels over the rows of a matrix: softmax, its logarithm, and the cross-entropy of labels.

``m`` is the row's maximum (NaN wins), ``s`` the sum of ``exp(x - m)`` in the order of row sums.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np
from numba import njit

from . import elementary
from .intrinsics import real, select, stack, word
from .kernel import kernel, share, vector, vector_as
from .reduce import LANES, ROW_BLOCK, clear, fold, row_block

INT64 = np.int64(0)


@njit
def row_max(x):
    """The largest element of a non-empty row; NaN if one is NaN."""
    largest = x[0]
    for i in range(1, x.size):
        larger = (x[i] > largest) | (x[i] != x[i])
        largest = select(larger & (largest == largest), x[i], largest)
    return largest


@njit
def exp_sum(x, shift, zero, lanes):
    """``sum_i exp(x[i] - shift)`` in the order of row sums."""
    total = zero
    for first in range(0, x.size, ROW_BLOCK):
        whole, stop = row_block(first, x.size)
        clear(lanes, zero)
        for i in range(first, whole, LANES):
            for lane in range(LANES):
                lanes[lane] += elementary.exp(x[i + lane] - shift)
        for i in range(whole, stop):
            lanes[i - whole] += elementary.exp(x[i] - shift)
        block = fold(lanes)
        total = block if first == 0 else total + block
    return total


@kernel
def softmax(table, ints, part, parts):
    """``out[r, i] = exp(x[r, i] - m) / s``; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n, lanes, zero = word(ints, 1), stack(table, LANES), real(table, 0.0)
    if n == 0:
        return 0
    for r in range(start, start + rows):
        out, x = vector(table, 0, r * n, n), vector(table, 1, r * n, n)
        m = row_max(x)
        s = exp_sum(x, m, zero, lanes)
        for i in range(n):
            out[i] = elementary.exp(x[i] - m) / s
    return 0


@kernel
def log_softmax(table, ints, part, parts):
    """``out[r, i] = (x[r, i] - m) - log s``; ints: rows, n."""
    start, rows = share(word(ints, 0), part, parts)
    n, lanes, zero = word(ints, 1), stack(table, LANES), real(table, 0.0)
    if n == 0:
        return 0
    for r in range(start, start + rows):
        out, x = vector(table, 0, r * n, n), vector(table, 1, r * n, n)
        m = row_max(x)
        log_s = elementary.log(exp_sum(x, m, zero, lanes))
        for i in range(n):
            out[i] = (x[i] - m) - log_s
    return 0


@njit(inline="always")
def _label(labels, r, n):
    """The label of a row, or -1 if there is no such class; negative labels are no classes."""
    return labels[r] if 0 <= labels[r] < n else -1


@kernel
def cross_entropy(table, ints, part, parts):
    """``out = sum_r (log s - (x[r, label] - m)) / rows``; arrays: out, x, labels; ints: rows, n."""
    _, mine = share(1, part, parts)
    rows, n, zero = word(ints, 0), word(ints, 1), real(table, 0.0)
    labels, lanes, terms = vector_as(table, INT64, 2, 0, rows), stack(table, LANES), stack(table, LANES)
    total = zero
    clear(terms, zero)
    for r in range(rows * mine):
        label, x = _label(labels, r, n), vector(table, 1, r * n, n)
        if label < 0:
            return r + 1
        m = row_max(x)
        log_s = elementary.log(exp_sum(x, m, zero, lanes))
        terms[r % LANES] += log_s - (x[label] - m)
        if (r + 1) % ROW_BLOCK == 0 or r + 1 == rows:
            block = fold(terms)
            total = block if r < ROW_BLOCK else total + block
            clear(terms, zero)
    if mine:
        vector(table, 0, 0, 1)[0] = total / real(table, rows)
    return 0


@kernel
def cross_entropy_grad(table, ints, part, parts):
    """``out = (softmax(x) - onehot(label)) * (g / rows)``; arrays: out, x, labels, g; ints: rows, n."""
    rows, n, zero = word(ints, 0), word(ints, 1), real(table, 0.0)
    start, count = share(rows, part, parts)
    labels, lanes = vector_as(table, INT64, 2, 0, rows), stack(table, LANES)
    weight = vector(table, 3, 0, 1)[0] / real(table, rows)
    for r in range(start, start + count):
        label, out, x = _label(labels, r, n), vector(table, 0, r * n, n), vector(table, 1, r * n, n)
        if label < 0:
            return r + 1
        m = row_max(x)
        s = exp_sum(x, m, zero, lanes)
        for i in range(n):
            out[i] = elementary.exp(x[i] - m) / s
        out[label] = out[label] - real(table, 1.0)
        for i in range(n):
            out[i] = out[i] * weight
    return 0

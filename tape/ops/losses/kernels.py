"""Kernels of losses: the terms of each element, and the negative log-likelihood of labels with its gradient.

``ignored`` and ``ignore`` say whether rows with one label are left out, and which.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ...numerics.engine.intrinsics import real, word
from ...numerics.engine.kernel import kernel, share, vector, vector_as
from ...numerics.engine.numba_internals import formula
from ...numerics.math import elementary
from ...numerics.simd.lanes import inlined
from ...numerics.simd.operations import Number, constant, float_of, select
from ...numerics.simd.pointwise import pointwise
from ...numerics.simd.sums import row_sum

INT64 = np.int64(0)


@pointwise(numbers=1)
def huber_terms(a: Number, b: Number, delta: Number) -> Number:
    """``d² / 2`` where ``|d| <= delta``, else ``delta (|d| - delta / 2)``, d = a - b."""
    half = constant(a, 0.5)
    d = a - b
    size = abs(d)
    return select(size <= delta, (half * d) * d, delta * (size - half * delta))


@formula
def product_of_logit(x: Number, t: Number) -> Number:
    """``x t``, +0 where t is 0, or where x is infinite and t is below 1."""
    zero, one, infinite = constant(x, 0.0), constant(x, 1.0), constant(x, np.inf)
    product = select(abs(t) <= zero, zero, x * t)
    return select(infinite <= x, select(t < one, zero, product), product)


logit_products = pointwise(product_of_logit, name="logit_products")


@pointwise
def logit_terms(x: Number, t: Number) -> Number:
    """``max(x, 0) - x t + ln(1 + e ** -|x|)``, ``x t`` as of `logit_products`."""
    zero = constant(x, 0.0)
    linear = select(x < zero, zero, x) - product_of_logit(x, t)
    return linear + elementary.log1p(elementary.exp(-abs(x)))


@inlined
def _weights(table, ints, first):
    """What the label's class and each class weigh: two floats in the words from ``first`` on."""
    return real(table, float_of(word(ints, first))), real(table, float_of(word(ints, first + 1)))


@kernel
def nll_rows(table, ints, part, parts):
    """``out[r] = -(x[r, label] own) - sum(x[r]) each``; arrays: out, x, labels.

    Words: rows, n, ignored, ignore, own, each. Without ``each`` no other class is looked at.
    """
    rows, n, ignored, ignore = word(ints, 0), word(ints, 1), word(ints, 2), word(ints, 3)
    own, each = _weights(table, ints, 4)
    zero = real(table, 0.0)
    start, count = share(rows, part, parts)
    out, labels = vector(table, 0, 0, rows), vector_as(table, INT64, 2, 0, rows)
    for r in range(start, start + count):
        label, x = labels[r], vector(table, 1, r * n, n)
        if ignored and label == ignore:
            out[r] = zero
            continue
        if label < 0 or label >= n:
            return r + 1
        loss = -(x[label] * own)
        out[r] = loss if each == zero else loss - row_sum(x, zero) * each
    return 0


@inlined
def _counted(labels, ignored, ignore):
    """How many labels are not to be ignored."""
    count = labels.size
    for label in labels:
        count -= (ignored != 0) & (label == ignore)
    return count


@kernel
def mean_of_counted(table, ints, part, parts):
    """``out = sum(losses) / count``; arrays: out, losses, labels; ints: rows, ignored, ignore."""
    _, mine = share(1, part, parts)
    rows = word(ints, 0)
    if mine:
        count = _counted(vector_as(table, INT64, 2, 0, rows), word(ints, 1), word(ints, 2))
        vector(table, 0, 0, 1)[0] = row_sum(vector(table, 1, 0, rows), real(table, 0.0)) / real(table, count)
    return 0


@kernel
def nll_grad(table, ints, part, parts):
    """``out[r, c] = -(w each)``, at the label ``-(w each) - w own``, where ``w = g / count``; arrays: out, g, labels.

    Words: rows, n, ignored, ignore, own, each, and whether g has an element for each row, which is its w. A row that
    is ignored is +0, and so is ``-(w each)`` without ``each``.
    """
    rows, n, ignored, ignore = word(ints, 0), word(ints, 1), word(ints, 2), word(ints, 3)
    own, each = _weights(table, ints, 4)
    zero = real(table, 0.0)
    labels = vector_as(table, INT64, 2, 0, rows)
    by_row = word(ints, 6)
    given = vector(table, 1, 0, rows if by_row else 1)
    weight = zero if by_row else given[0] / real(table, _counted(labels, ignored, ignore))
    start, count = share(rows, part, parts)
    for r in range(start, start + count):
        label, out = labels[r], vector(table, 0, r * n, n)
        left_out = ignored != 0 and label == ignore
        if not left_out and (label < 0 or label >= n):
            return r + 1
        weight = given[r] if by_row else weight
        others = zero if each == zero else -(weight * each)
        fill = zero if left_out else others
        for i in range(n):
            out[i] = fill
        if not left_out:
            out[label] = others - weight * own
    return 0

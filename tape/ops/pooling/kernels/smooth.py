"""Kernels of smooth maxima: the pivot of each window, sums of exponentials, and what their derivatives add.

The words are made by `pooling_windows.words`, with beta as the number; BETA is beta in the element type. The pivot is
the largest cell of the window for positive beta and the smallest for negative, or 0 if that is infinite.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.math import elementary
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import constant, float_of, select
from ....numerics.simd.vectors import combine
from .fold import fold, fold_cells, line_of, plane_of, room, visit_columns, visit_share
from .windows import NUMBER


@inlined
def _beyond(most, x, _, __, beta):
    """Which zero of two it is cannot be seen; a NaN is left to the sums."""
    return select(x * beta > most * beta, x, most)


@inlined
def _plus_exp(total, x, _, pivot, beta):
    return total + elementary.exp((x - pivot) * beta)


@inlined
def _plus_weighted(total, x, u, pivot, beta):
    return total + u * elementary.exp((x - pivot) * beta)


@inlined
def _plus_slope(total, weight, pivot, x, beta):
    return total + weight * elementary.exp((x - pivot) * beta)


@inlined
def _value(pivot, total, beta):
    return pivot + elementary.log(total) / beta


@inlined
def _pivot(load, store, function, most, where, out, x, sign):
    _, _, _, place, period, left = where
    found = fold_cells(load, function, most, most, where, x, sign, sign)
    zero = constant(found, 0.0)
    store(out, place, period, left, select(found - found == zero, found, zero))


@inlined
def _beta(table, ints):
    return real(table, float_of(word(ints, NUMBER)))


@inlined
def _pivots(table, ints, line, number):
    sign = real(table, 1.0) if _beta(table, ints) > real(table, 0.0) else real(table, -1.0)
    out, x = line_of(table, ints, 0, number), plane_of(table, ints, 1, line)
    visit_columns(_pivot, _beyond, sign * real(table, -np.inf), ints, line, out, x, sign)


@inlined
def _sums(table, ints, line, number):
    out, pivots = line_of(table, ints, 0, number), line_of(table, ints, 2, number)
    zero, beta = real(table, 0.0), _beta(table, ints)
    visit_columns(fold, _plus_exp, zero, ints, line, out, pivots, plane_of(table, ints, 1, line), zero, beta)


@inlined
def _weighted_sums(table, ints, line, number):
    x, u, out = plane_of(table, ints, 1, line), plane_of(table, ints, 2, line), line_of(table, ints, 0, number)
    pivots, beta = line_of(table, ints, 3, number), _beta(table, ints)
    visit_columns(fold, _plus_weighted, real(table, 0.0), ints, line, out, pivots, x, u, beta)


@inlined
def _slopes(table, ints, line, number):
    out, x = line_of(table, ints, 0, number), line_of(table, ints, 1, number)
    weights, pivots, beta = plane_of(table, ints, 2, line), plane_of(table, ints, 3, line), _beta(table, ints)
    visit_columns(fold, _plus_slope, real(table, 0.0), ints, line, out, x, weights, pivots, beta)


@kernel
def smooth_pivots(table, ints, part, parts):
    """``out[o]`` is the pivot of window o of x."""
    return visit_share(_pivots, table, ints, part, parts, room(table))


@kernel
def smooth_sums(table, ints, part, parts):
    """``out[o]`` is +0 plus each ``exp((x - p)·BETA)`` of window o; arrays: out, x, pivots."""
    return visit_share(_sums, table, ints, part, parts, room(table))


@kernel
def smooth_weighted_sums(table, ints, part, parts):
    """``out[o]`` is +0 plus each ``u·exp((x - p)·BETA)`` of window o; arrays: out, x, u, pivots."""
    return visit_share(_weighted_sums, table, ints, part, parts, room(table))


@kernel
def smooth_slopes(table, ints, part, parts):
    """``out[i]`` is +0 plus each ``w·exp((x[i] - p)·BETA)`` of the windows with cell i; arrays: out, x, w, pivots.

    The words are those of the transposed windows.
    """
    return visit_share(_slopes, table, ints, part, parts, room(table))


@kernel
def smooth_values(table, ints, part, parts):
    """``out = p + log(s) / BETA``; arrays: out, pivots, sums; ints: n, beta."""
    start, n = share(word(ints, 0), part, parts)
    out, pivots, sums = vector(table, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n)
    combine(_value, out, pivots, sums, real(table, float_of(word(ints, 1))))
    return 0

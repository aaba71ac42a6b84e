"""Singular vectors by rotations: rows are turned against each other until all are at right angles (one-sided Jacobi).

A matrix is the work of one thread. Sums are chains in ascending order; pairs of rows are taken in ascending order.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.simd.operations import fma, select, sqrt
from ....numerics.simd.pack import itemsize

SWEEPS = 40
"""After so many times through all pairs the rows are taken as they are."""


@njit(inline="always")
def _dot(table, x, y, size):
    """The chain of products of two rows, which begin at these elements."""
    total, a, b = real(table, 0.0), vector(table, 0, x, size), vector(table, 0, y, size)
    for i in range(size):
        total = fma(a[i], b[i], total)
    return total


@njit(inline="always")
def _turn(table, x, y, at, size, both, tolerance, cut):
    """Turn two rows in their plane so that the parts from ``at`` on are at right angles; 0 where they were."""
    a, b, c = _dot(table, x + at, x + at, size), _dot(table, y + at, y + at, size), _dot(table, x + at, y + at, size)
    if a <= cut or b <= cut or not abs(c) > tolerance * (sqrt(a) * sqrt(b)):
        return 0
    zeta, one = (b - a) / (c + c), real(table, 1.0)
    size_of = one / (abs(zeta) + sqrt(fma(zeta, zeta, one)))
    tangent = select(zeta < real(table, 0.0), -size_of, size_of)
    cosine = one / sqrt(fma(tangent, tangent, one))
    sine = cosine * tangent
    half = sine / (one + cosine)  # the tangent of half the angle: by it small angles have small errors
    left, right = vector(table, 0, x, both), vector(table, 0, y, both)
    for i in range(both):
        before, other = left[i], right[i]
        left[i] = fma(-sine, fma(half, before, other), before)
        right[i] = fma(sine, fma(-half, other, before), other)
    return 1


@njit(inline="always")
def _begin(table, m, first, rows, columns, scale):
    """The rows that are turned, beside those of the unit matrix; of a matrix that is higher than wide, its columns."""
    least, width = min(rows, columns), rows + columns + 1
    for j in range(least):
        out = vector(table, 0, first + j * width, width)
        for i in range(width):
            out[i] = real(table, 0.0)
        if rows >= columns:
            out[rows + j] = real(table, 1.0)
            for i in range(rows):
                out[i] = scale * vector(table, 1, (m * rows + i) * columns + j, 1)[0]
        else:
            out[j] = real(table, 1.0)
            a = vector(table, 1, (m * rows + j) * columns, columns)
            for i in range(columns):
                out[rows + i] = scale * a[i]


@njit(inline="always")
def _scale(table, first, size, limit):
    """The power of two by which the largest element becomes one from 1 to 2, as far as the limit; 1 for none."""
    most, scale, one, two = real(table, 0.0), real(table, 1.0), real(table, 1.0), real(table, 2.0)
    a = vector(table, 1, first, size)
    for i in range(size):
        most = abs(a[i]) if abs(a[i]) > most else most
    if most > real(table, 0.0) and most + most > most:
        while most * scale >= two and scale > one / limit:
            scale = scale / two
        while most * scale < one and scale < limit:
            scale = scale + scale
    return scale


@njit(inline="always")
def _order(table, first, least, width):
    """The longest row first: of equal ones the first; each ends with its length."""
    for i in range(least):
        best, most = i, vector(table, 0, first + (i + 1) * width - 1, 1)[0]
        for r in range(i + 1, least):
            length = vector(table, 0, first + (r + 1) * width - 1, 1)[0]
            if length > most:
                best, most = r, length
        if best != i:
            above, other = vector(table, 0, first + i * width, width), vector(table, 0, first + best * width, width)
            for j in range(width):
                above[j], other[j] = other[j], above[j]


@njit(inline="always")
def _complete(table, first, j, at, size, width):
    """A row at right angles to those above it, made of the unit vector that they hold least of, the first of equal."""
    chosen, least = 0, real(table, 0.0)
    for i in range(size):
        held = real(table, 0.0)
        for k in range(j):
            x = vector(table, 0, first + k * width + at + i, 1)[0]
            held = fma(x, x, held)
        if i == 0 or held < least:
            chosen, least = i, held
    out = vector(table, 0, first + j * width + at, size)
    for i in range(size):
        out[i] = select(i == chosen, real(table, 1.0), real(table, 0.0))
    for k in range(2 * j):  # twice, for what rounding leaves
        above = first + (k % j) * width + at
        part = _dot(table, above, first + j * width + at, size)
        x = vector(table, 0, above, size)
        for i in range(size):
            out[i] = fma(-part, x[i], out[i])
    length = sqrt(_dot(table, first + j * width + at, first + j * width + at, size))
    for i in range(size):
        out[i] = out[i] / length


@kernel
def rotations(table, ints, part, parts):
    """Of each singular value, from the largest, a row: left vector, right one, value; ints: matrices, rows, columns."""
    start, count = share(word(ints, 0), part, parts)
    rows, columns = word(ints, 1), word(ints, 2)
    least, both = min(rows, columns), rows + columns
    width = both + 1
    at = 0 if rows >= columns else rows
    size = max(rows, columns)
    wide = itemsize(table) == 8
    tolerance = (real(table, 2.0**-52) if wide else real(table, 2.0**-23)) * sqrt(real(table, size))
    limit = real(table, 2.0**1000) if wide else real(table, 2.0**100)
    share_lost = real(table, 2.0**-200) if wide else real(table, 2.0**-60)
    for m in range(start, start + count):
        first = m * least * width
        scale = _scale(table, m * rows * columns, rows * columns, limit)
        _begin(table, m, first, rows, columns, scale)
        total = real(table, 0.0)
        for j in range(least):
            total = total + _dot(table, first + j * width + at, first + j * width + at, size)
        cut = share_lost * total + (total - total)  # NaN, which cuts nothing, if that is not finite
        for _ in range(SWEEPS):
            turned = 0
            for p in range(least - 1):
                for q in range(p + 1, least):
                    turned += _turn(table, first + p * width, first + q * width, at, size, both, tolerance, cut)
            if turned == 0:
                break
        for j in range(least):
            begin = first + j * width
            square = _dot(table, begin + at, begin + at, size)
            vector(table, 0, begin + both, 1)[0] = select(square <= cut, real(table, 0.0), sqrt(square))
        _order(table, first, least, width)
        for j in range(least):
            length = vector(table, 0, first + j * width + both, 1)[0]
            if length == real(table, 0.0):
                _complete(table, first, j, at, size, width)
            else:
                out = vector(table, 0, first + j * width + at, size)
                for i in range(size):
                    out[i] = out[i] / length
                vector(table, 0, first + j * width + both, 1)[0] = length / scale
    return 0

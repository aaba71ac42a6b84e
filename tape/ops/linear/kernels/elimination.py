"""Equations of square matrices by elimination, and factors of an orthogonal and a triangular matrix by reflections.

A matrix is the work of one thread. Chains run along columns of the matrix, in ascending order of its rows.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.simd.operations import fma, select, sqrt


@njit(inline="always")
def _subtract(out, factor, x, start):
    """``out = fma(-factor, x, out)`` from a position on."""
    for j in range(start, out.size):
        out[j] = fma(-factor, x[j], out[j])


@njit(inline="always")
def _pivot(table, first, width, i, n):
    """Which row from i on has the largest element of column i: the first of equal ones, or of NaN."""
    row, best = i, abs(vector(table, 0, (first + i) * width + i, 1)[0])
    for r in range(i + 1, n):
        size = abs(vector(table, 0, (first + r) * width + i, 1)[0])
        if size > best or (size != size and best == best):
            row, best = r, size
    return row, best


@kernel
def solve(table, ints, part, parts):
    """Rows of what elimination leaves of a, and of x with ``a x = b`` behind them; ints: matrices, n, columns.

    The status is 1 and the number of the first matrix that has no inverse.
    """
    start, count = share(word(ints, 0), part, parts)
    n, columns = word(ints, 1), word(ints, 2)
    width = n + columns
    for m in range(start, start + count):
        first = m * n
        for i in range(first, first + n):
            out, a, b = (
                vector(table, 0, i * width, width),
                vector(table, 1, i * n, n),
                vector(table, 2, i * columns, columns),
            )
            for j in range(n):
                out[j] = a[j]
            for j in range(columns):
                out[n + j] = b[j]
        for i in range(n):
            row, best = _pivot(table, first, width, i, n)
            if best == real(table, 0.0):
                return 1 + m
            above, other = vector(table, 0, (first + i) * width, width), vector(table, 0, (first + row) * width, width)
            for j in range(width):
                above[j], other[j] = other[j], above[j]
            for r in range(i + 1, n):
                below = vector(table, 0, (first + r) * width, width)
                factor = below[i] / above[i]
                below[i] = factor
                _subtract(below, factor, above, i + 1)
        for done in range(n):
            i = n - 1 - done
            out, u = vector(table, 0, (first + i) * width + n, columns), vector(table, 0, (first + i) * width, n)
            for before in range(done):
                k = n - 1 - before
                _subtract(out, u[k], vector(table, 0, (first + k) * width + n, columns), 0)
            for j in range(columns):
                out[j] = out[j] / u[i]
    return 0


@njit(inline="always")
def _reflect(table, column, at, width, i, rows, share_of):
    """A column less ``share_of · (vᵀ column) · v``, where v is 1 at i and stands below in the column ``at``."""
    total = vector(table, 0, column + i * width, 1)[0]
    for r in range(i + 1, rows):
        total = fma(vector(table, 0, at + r * width, 1)[0], vector(table, 0, column + r * width, 1)[0], total)
    step = share_of * total
    top = vector(table, 0, column + i * width, 1)
    top[0] = top[0] - step
    for r in range(i + 1, rows):
        out = vector(table, 0, column + r * width, 1)
        out[0] = fma(-step, vector(table, 0, at + r * width, 1)[0], out[0])


@njit(inline="always")
def _share_of(table, at, width, i, rows):
    """``2 / vᵀv``, or 0 where v is 1 and zeros: nothing is reflected."""
    total = real(table, 0.0)
    for r in range(i + 1, rows):
        below = vector(table, 0, at + r * width, 1)[0]
        total = fma(below, below, total)
    return select(total == real(table, 0.0), real(table, 0.0), real(table, 2.0) / (real(table, 1.0) + total))


@kernel
def reflections(table, ints, part, parts):
    """The orthogonal q and the upper triangular r with ``q r = a``, side by side; ints: matrices, rows, columns."""
    start, count = share(word(ints, 0), part, parts)
    rows, columns = word(ints, 1), word(ints, 2)
    least = min(rows, columns)
    width = least + columns
    for m in range(start, start + count):
        first = m * rows * width
        for i in range(rows):
            out, a = vector(table, 0, first + i * width, width), vector(table, 1, (m * rows + i) * columns, columns)
            for j in range(least):
                out[j] = select(i == j, real(table, 1.0), real(table, 0.0))
            for j in range(columns):
                out[least + j] = a[j]
        for i in range(least):
            at = first + least + i
            total = real(table, 0.0)
            for r in range(i, rows):
                below = vector(table, 0, at + r * width, 1)[0]
                total = fma(below, below, total)
            top = vector(table, 0, at + i * width, 1)
            norm = sqrt(total)
            turned = select(top[0] < real(table, 0.0), norm, -norm)
            divisor = top[0] - turned
            for r in range(i + 1, rows):
                out = vector(table, 0, at + r * width, 1)
                out[0] = select(out[0] == real(table, 0.0), real(table, 0.0), out[0] / divisor)
            share_of = _share_of(table, at, width, i, rows)
            if share_of != real(table, 0.0):
                for j in range(i + 1, columns):
                    _reflect(table, first + least + j, at, width, i, rows, share_of)
                top[0] = turned
        for back in range(least):
            i = least - 1 - back
            at = first + least + i
            share_of = _share_of(table, at, width, i, rows)
            if share_of != real(table, 0.0):
                for j in range(i, least):
                    _reflect(table, first + j, at, width, i, rows, share_of)
        for i in range(1, rows):
            out = vector(table, 0, first + i * width + least, columns)
            for j in range(min(i, columns)):
                out[j] = real(table, 0.0)
    return 0

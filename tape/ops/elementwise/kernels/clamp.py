"""Kernels that compare: size, the larger and the smaller of two, clamping, and what their gradients select."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.simd.lanes import inlined
from ....numerics.simd.minmax import larger, smaller
from ....numerics.simd.operations import constant, float_of, select
from ....numerics.simd.vectors import combine, transform


@inlined
def _size(x):
    return abs(x)


@inlined
def _times_sign(g, x):
    zero = constant(x, 0.0)
    return select(x > zero, g, select(x < zero, -g, zero))


@inlined
def _clamped(x, low, high):
    return smaller(larger(x, low), high)


@inlined
def _where_inside(g, x, low, high):
    zero = constant(x, 0.0)
    return select(x > low, select(x < high, g, zero), zero)


@inlined
def _unary(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    return vector(table, 0, start, n), vector(table, 1, start, n)


@inlined
def _binary(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    return vector(table, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n)


@inlined
def _bounds(table, ints):
    low, high = float_of(word(ints, 1)), float_of(word(ints, 2))
    return real(table, low), real(table, high)


@kernel
def absolute(table, ints, part, parts):
    """``out = |x|``: the sign bit cleared."""
    out, x = _unary(table, ints, part, parts)
    transform(_size, out, x)
    return 0


@kernel
def times_sign(table, ints, part, parts):
    """``out = g`` where x > 0, ``-g`` where x < 0, else +0; arrays: out, g, x."""
    out, g, x = _binary(table, ints, part, parts)
    combine(_times_sign, out, g, x)
    return 0


@kernel
def maximum(table, ints, part, parts):
    """``out = max(a, b)``; NaN wins, -0 < +0."""
    out, a, b = _binary(table, ints, part, parts)
    combine(larger, out, a, b)
    return 0


@kernel
def minimum(table, ints, part, parts):
    """``out = min(a, b)``; NaN wins, -0 < +0."""
    out, a, b = _binary(table, ints, part, parts)
    combine(smaller, out, a, b)
    return 0


@kernel
def winner_share(table, ints, part, parts):
    """``out = g`` where a > b, +0 where a < b, else ``g / 2``; arrays: out, g, a, b."""
    out, g, a = _binary(table, ints, part, parts)
    start, n = share(word(ints, 0), part, parts)
    b, zero, half = vector(table, 3, start, n), real(table, 0.0), real(table, 0.5)
    for i in range(n):
        out[i] = select(a[i] > b[i], g[i], select(a[i] < b[i], zero, g[i] * half))
    return 0


@kernel
def clamp(table, ints, part, parts):
    """``out = min(high, max(low, x))``; ints: n, low, high."""
    out, x = _unary(table, ints, part, parts)
    low, high = _bounds(table, ints)
    transform(_clamped, out, x, low, high)
    return 0


@kernel
def where_inside(table, ints, part, parts):
    """``out = g`` where low < x < high, else +0; arrays: out, g, x; ints: n, low, high."""
    out, g, x = _binary(table, ints, part, parts)
    low, high = _bounds(table, ints)
    combine(_where_inside, out, g, x, low, high)
    return 0

"""Kernels that compute each output element from the elements at its own position.

All read and write contiguous arrays; ``ints`` is ``[number of elements, attribute…]``. The formulas stand in
the numerics documentation; the order of operations is the order written here.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np
from numba import njit

from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector, vector_as
from ....numerics.math import elementary
from ....numerics.simd import operations
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import constant, float_of, select
from ....numerics.simd.vectors import combine, transform

BYTE, INT64 = np.uint8(0), np.int64(0)


@njit(inline="always")
def _unary(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    return vector(table, 0, start, n), vector(table, 1, start, n)


@njit(inline="always")
def _binary(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    return vector(table, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n)


@njit(inline="always")
def _comparison(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    return vector_as(table, BYTE, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n)


@njit(inline="always")
def _masked(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    return vector(table, 0, start, n), vector_as(table, BYTE, 1, start, n), vector(table, 2, start, n)


@inlined
def _difference(a, b):
    return a - b


@kernel
def sub(table, ints, part, parts):
    """``out = a - b``."""
    out, a, b = _binary(table, ints, part, parts)
    combine(_difference, out, a, b)
    return 0


@inlined
def _product(a, b):
    return a * b


@kernel
def mul(table, ints, part, parts):
    """``out = a * b``."""
    out, a, b = _binary(table, ints, part, parts)
    combine(_product, out, a, b)
    return 0


@inlined
def _quotient(a, b):
    return a / b


@kernel
def div(table, ints, part, parts):
    """``out = a / b``."""
    out, a, b = _binary(table, ints, part, parts)
    combine(_quotient, out, a, b)
    return 0


@inlined
def _opposite(x):
    return -x


@kernel
def neg(table, ints, part, parts):
    """``out = -x``: the sign bit flipped."""
    out, x = _unary(table, ints, part, parts)
    transform(_opposite, out, x)
    return 0


@kernel
def scale(table, ints, part, parts):
    """``out = x * c``; ints: n, c."""
    out, x = _unary(table, ints, part, parts)
    transform(_product, out, x, real(table, float_of(word(ints, 1))))
    return 0


@kernel
def divide(table, ints, part, parts):
    """``out = x / n`` for a whole number n; ints: number of elements, n."""
    out, x = _unary(table, ints, part, parts)
    transform(_quotient, out, x, real(table, word(ints, 1)))
    return 0


@inlined
def _power(x, exponent):
    result, square, left = constant(x, 1.0), x, abs(exponent)
    while left > 0:
        if left & 1:
            result = result * square
        square = square * square
        left >>= 1
    return constant(x, 1.0) / result if exponent < 0 else result


@kernel
def power(table, ints, part, parts):
    """``out = x ** |n|`` by binary powering, ``1 / that`` for n < 0; ints: number of elements, n."""
    out, x = _unary(table, ints, part, parts)
    transform(_power, out, x, word(ints, 1))
    return 0


@inlined
def _positive(x):
    return select(x <= constant(x, 0.0), constant(x, 0.0), x)


@kernel
def relu(table, ints, part, parts):
    """``out = x`` where x > 0 or x is NaN, else +0."""
    out, x = _unary(table, ints, part, parts)
    transform(_positive, out, x)
    return 0


@inlined
def _kept(g, y):
    return select(y > constant(y, 0.0), g, constant(g, 0.0))


@kernel
def where_positive(table, ints, part, parts):
    """``out = g`` where y > 0, else +0; arrays: out, g, y."""
    out, g, y = _binary(table, ints, part, parts)
    combine(_kept, out, g, y)
    return 0


@kernel
def sqrt(table, ints, part, parts):
    """``out = sqrt(max(x, +0))``; NaN stays."""
    out, x = _unary(table, ints, part, parts)
    zero = real(table, 0.0)
    for i in range(out.size):
        out[i] = operations.sqrt(select(x[i] <= zero, zero, x[i]))
    return 0


@kernel
def exp(table, ints, part, parts):
    """``out = e ** x``."""
    out, x = _unary(table, ints, part, parts)
    transform(elementary.exp, out, x)
    return 0


@kernel
def log(table, ints, part, parts):
    """``out = ln x``."""
    out, x = _unary(table, ints, part, parts)
    transform(elementary.log, out, x)
    return 0


@kernel
def tanh(table, ints, part, parts):
    """``out = tanh x``."""
    out, x = _unary(table, ints, part, parts)
    transform(elementary.tanh, out, x)
    return 0


@kernel
def sigmoid(table, ints, part, parts):
    """``out = 1 / (1 + e ** -x)``."""
    out, x = _unary(table, ints, part, parts)
    transform(elementary.sigmoid, out, x)
    return 0


@kernel
def equal(table, ints, part, parts):
    """``out = a == b`` as bytes."""
    out, a, b = _comparison(table, ints, part, parts)
    for i in range(out.size):
        out[i] = a[i] == b[i]
    return 0


@kernel
def not_equal(table, ints, part, parts):
    """``out = a != b`` as bytes."""
    out, a, b = _comparison(table, ints, part, parts)
    for i in range(out.size):
        out[i] = a[i] != b[i]
    return 0


@kernel
def less(table, ints, part, parts):
    """``out = a < b`` as bytes; swap the arrays for greater."""
    out, a, b = _comparison(table, ints, part, parts)
    for i in range(out.size):
        out[i] = a[i] < b[i]
    return 0


@kernel
def less_equal(table, ints, part, parts):
    """``out = a <= b`` as bytes; swap the arrays for greater_equal."""
    out, a, b = _comparison(table, ints, part, parts)
    for i in range(out.size):
        out[i] = a[i] <= b[i]
    return 0


@kernel
def where(table, ints, part, parts):
    """``out = a`` where the mask is set, else b; arrays: out, mask, a, b."""
    start, n = share(word(ints, 0), part, parts)
    out, mask, a = _masked(table, ints, part, parts)
    b = vector(table, 3, start, n)
    for i in range(n):
        out[i] = select(mask[i] != 0, a[i], b[i])
    return 0


@kernel
def keep(table, ints, part, parts):
    """``out = x`` where the mask equals ints[1] (0 or 1), else +0; arrays: out, mask, x."""
    out, mask, x = _masked(table, ints, part, parts)
    zero, wanted = real(table, 0.0), word(ints, 1)
    for i in range(out.size):
        out[i] = select(mask[i] == wanted, x[i], zero)
    return 0

"""The kernel of powers whose exponents are elements, of every base and every exponent."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ....numerics.engine.intrinsics import word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.math import elementary
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import constant, select
from ....numerics.simd.vectors import combine
from .rounding import nearest, signed


@inlined
def _pow(x, exponent):
    one, infinity = constant(x, 1.0), constant(x, np.inf)
    a, size = abs(x), abs(exponent)
    half = constant(x, 0.5) * size
    whole = nearest(size) == size
    y = elementary.power(a, exponent)
    y = select(whole, select(nearest(half) == half, y, signed(y, x)), y)
    unknown = select(whole, y, select(a == infinity, y, constant(x, np.nan)))
    y = select(x < constant(x, 0.0), unknown, y)
    y = select(a == one, select(size == infinity, one, y), y)
    y = select(exponent != exponent, exponent, y)
    y = select(exponent == constant(x, 0.0), one, y)
    return select(x == one, one, y)


@kernel
def pow_of_elements(table, ints, part, parts):
    """``out = x ** exponent``; arrays: out, x, exponent."""
    start, n = share(word(ints, 0), part, parts)
    combine(_pow, vector(table, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n))
    return 0

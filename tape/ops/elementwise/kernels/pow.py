"""The formula of powers whose exponents are elements, of every base and every exponent: a kernel."""

from math import inf, nan

from ....numerics.math import elementary
from ....numerics.math.inverse import signed
from ....numerics.math.rounding import nearest
from ....numerics.simd.operations import Number, constant, select
from ....numerics.simd.pointwise import pointwise


@pointwise
def pow_of_elements(x: Number, exponent: Number) -> Number:
    """``x ** exponent``."""
    one, infinity = constant(x, 1.0), constant(x, inf)
    a, size = abs(x), abs(exponent)
    half = constant(x, 0.5) * size
    whole = nearest(size) == size
    y = elementary.power(a, exponent)
    y = select(whole, select(nearest(half) == half, y, signed(y, x)), y)
    unknown = select(whole, y, select(a == infinity, y, constant(x, nan)))
    y = select(x < constant(x, 0.0), unknown, y)
    y = select(a == one, select(size == infinity, one, y), y)
    y = select(exponent != exponent, exponent, y)
    y = select(exponent == constant(x, 0.0), one, y)
    return select(x == one, one, y)

"""Formulas that compare: size, the larger and the smaller of two, clamping, and what their gradients select."""

from ....numerics.simd import minmax
from ....numerics.simd.operations import Number, constant, select
from ....numerics.simd.pointwise import pointwise


@pointwise
def absolute(x: Number) -> Number:
    """``|x|``: the sign bit cleared."""
    return abs(x)


@pointwise
def times_sign(g: Number, x: Number) -> Number:
    """g where x > 0, ``-g`` where x < 0, else +0."""
    zero = constant(x, 0.0)
    return select(x > zero, g, select(x < zero, -g, zero))


maximum = pointwise(minmax.larger, name="maximum", home=__name__)
minimum = pointwise(minmax.smaller, name="minimum", home=__name__)


@pointwise
def winner_share(g: Number, a: Number, b: Number) -> Number:
    """g where a > b, +0 where a < b, else ``g / 2``."""
    return select(a > b, g, select(a < b, constant(g, 0.0), g * constant(g, 0.5)))


@pointwise(numbers=2)
def clamp(x: Number, low: Number, high: Number) -> Number:
    """``min(high, max(low, x))``."""
    return minmax.smaller(minmax.larger(x, low), high)


@pointwise(numbers=2)
def where_inside(g: Number, x: Number, low: Number, high: Number) -> Number:
    """g where low < x < high, else +0."""
    zero = constant(x, 0.0)
    return select(x > low, select(x < high, g, zero), zero)

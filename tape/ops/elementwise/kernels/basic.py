"""Formulas of arithmetic, comparisons and selection, each a kernel.

All read and write contiguous arrays. The formulas stand in the numerics documentation; the order of operations is the
order written here.
"""

from ....numerics.math import elementary
from ....numerics.simd import operations
from ....numerics.simd.operations import Mask, Number, constant, select
from ....numerics.simd.pointwise import comparing, pointwise, selecting


@pointwise
def sub(a: Number, b: Number) -> Number:
    """``a - b``."""
    return a - b


@pointwise
def mul(a: Number, b: Number) -> Number:
    """``a * b``."""
    return a * b


@pointwise
def div(a: Number, b: Number) -> Number:
    """``a / b``."""
    return a / b


@pointwise
def neg(x: Number) -> Number:
    """``-x``: the sign bit flipped."""
    return -x


@pointwise(numbers=1)
def scale(x: Number, c: Number) -> Number:
    """``x * c``."""
    return x * c


@pointwise(numbers=1, whole=True)
def divide(x: Number, n: Number) -> Number:
    """``x / n`` for a whole number n."""
    return x / n


@pointwise
def relu(x: Number) -> Number:
    """x where x > 0 or x is NaN, else +0."""
    return select(x <= constant(x, 0.0), constant(x, 0.0), x)


@pointwise
def where_positive(g: Number, y: Number) -> Number:
    """g where y > 0, else +0."""
    return select(y > constant(y, 0.0), g, constant(g, 0.0))


@pointwise
def sqrt(x: Number) -> Number:
    """``sqrt(max(x, +0))``; NaN stays."""
    return operations.sqrt(select(x <= constant(x, 0.0), constant(x, 0.0), x))


exp = pointwise(elementary.exp, home=__name__)
log = pointwise(elementary.log, home=__name__)
tanh = pointwise(elementary.tanh, home=__name__)
sigmoid = pointwise(elementary.sigmoid, home=__name__)


@comparing
def equal(a: Number, b: Number) -> Mask:
    """``a == b``."""
    return a == b


@comparing
def not_equal(a: Number, b: Number) -> Mask:
    """``a != b``."""
    return a != b


@comparing
def less(a: Number, b: Number) -> Mask:
    """``a < b``; swap the arrays for greater."""
    return a < b


@comparing
def less_equal(a: Number, b: Number) -> Mask:
    """``a <= b``; swap the arrays for greater_equal."""
    return a <= b


@selecting
def where(condition: Mask, a: Number, b: Number) -> Number:
    """a where the mask is set, else b."""
    return select(condition, a, b)

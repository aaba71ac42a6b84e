"""Powers by a number, written slowly and plainly."""

import numpy as np

from ....base.arrays import Array
from ...numerics.math.reference import functions as reference


def powered(x: Array, exponent: float) -> Array:
    """``x ** exponent`` for an exponent that is rounded to the element type first."""
    rounded = float(x.dtype.type(exponent))
    return _power(x, int(rounded)) if rounded.is_integer() else reference.power(x, rounded)


def _power(x: Array, exponent: int) -> Array:
    """``x ** exponent`` by binary powering."""
    result, square, left = np.ones_like(x), x, abs(exponent)
    while left:
        result = result * square if left & 1 else result
        square, left = square * square, left >> 1
    return x.dtype.type(1) / result if exponent < 0 else result

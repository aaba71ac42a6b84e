"""Whole powers, written slowly and plainly."""

import numpy as np

from ....arrays import Array


def power(x: Array, exponent: int) -> Array:
    """``x ** exponent`` by binary powering."""
    result, square, left = np.ones_like(x), x, abs(exponent)
    while left:
        result = result * square if left & 1 else result
        square, left = square * square, left >> 1
    return x.dtype.type(1) / result if exponent < 0 else result

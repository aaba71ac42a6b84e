"""Whole powers, written slowly and plainly."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def power(x: Array, exponent: int) -> Array:
    """``x ** exponent`` by binary powering."""
    result, square, left = np.ones_like(x), x, abs(exponent)
    while left:
        result = result * square if left & 1 else result
        square, left = square * square, left >> 1
    return x.dtype.type(1) / result if exponent < 0 else result

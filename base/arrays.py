"""Arrays as annotations name them."""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

Arrays: TypeAlias = Mapping[str, Array]
"""Name → array."""


@cache
def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether it is a type of floats, of 8 and 16 bits too, of which `ml_dtypes` has those that numpy has not.

    >>> is_float(np.dtype(np.float16)), is_float(np.dtype(np.complex64))
    (True, False)
    """
    return dtype.name.startswith(("float", "bfloat"))


def real_parts(array: Array) -> Array:
    """Complex numbers as pairs of floats along a last axis, in C order; another array as it is.

    >>> real_parts(np.array([1 + 2j]))
    array([[1., 2.]])
    """
    if array.dtype.kind != "c":
        return array
    floats = array.dtype.newbyteorder("=").type(0).real.dtype.newbyteorder(array.dtype.byteorder)
    pairs: Array = np.ascontiguousarray(array)[..., None].view(floats).reshape(*array.shape, 2)
    return pairs

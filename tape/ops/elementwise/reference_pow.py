"""Powers of elements by elements, written slowly and plainly: the cases of IEEE-754's pow, one after another."""

from typing import Any

import numpy as np

from ....base.arrays import Array
from ...numerics.math import reference


def _pow(x: Any, exponent: Any) -> Any:
    real = x.dtype.type
    size = np.abs(x)
    whole = np.isinf(exponent) or float(exponent).is_integer()
    if exponent == 0 or x == 1 or (size == 1 and np.isinf(exponent)):
        return real(1)
    if np.isnan(x) or np.isnan(exponent) or (x < 0 and not whole and size < np.inf):
        return real(np.nan)
    y = reference.power(np.asarray([size]), float(exponent))[0]
    odd = np.isfinite(exponent) and whole and int(exponent) % 2 == 1
    return -y if odd and np.signbit(x) else y


def pow_of_elements(x: Array, exponent: Array) -> Array:
    """``x ** exponent``, element by element."""
    out = np.empty_like(x)
    with np.errstate(all="ignore"):
        for at in np.ndindex(x.shape):
            out[at] = _pow(x[at], exponent[at])
    return out

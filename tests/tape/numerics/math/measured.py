"""How functions are measured: over arrays in compiled code, by their bits, and by their distance from true values."""

# numba's functions carry no types.
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# pyright: basic
from typing import Any

import mpmath
import numpy as np
from numba import njit


def loop_over(function: Any) -> Any:
    """Compiled code that calls a function for each element of an array."""

    @njit(error_model="numpy")
    def loop(x, y):
        for i in range(x.size):
            y[i] = function(x[i])

    return loop


def bits(x: np.ndarray) -> np.ndarray:
    """Bit patterns, one for all NaN."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(f"u{x.itemsize}")


def ulps(got: Any, true: mpmath.mpf) -> float:
    """The error in units of the float spacing at the true value."""
    if true == 0:
        return 0.0 if got == 0 else np.inf
    info = np.finfo(type(got))
    unit = max(mpmath.frexp(true)[1] - 1, int(info.minexp)) - int(info.nmant)
    return float(mpmath.ldexp(abs(mpmath.mpf(float(got)) - true), -unit))

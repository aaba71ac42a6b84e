"""The elementary functions as Python reads their formulas: what kernels are held to.

The text is that of the kernels. So it says what LLVM must make of the formulas, not that these are right: the tests
hold them against mpmath, tables of special values, and other texts of their hardest parts.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...coefficients import FLOAT64, TWO_OVER_PI, Real
from ...exact_fma import fma
from ...simd.operations import Number, constants
from .. import elementary, inverse, trigonometry

Reals = npt.NDArray[Real]


def reading(text: Callable[..., Any]) -> Callable[..., Reals]:
    """A formula as a function of float32 or float64 arrays, without numpy's warnings; the same shape and dtype.

    >>> reading(elementary.exp)(np.float32([0.0, 1.0])).tolist()
    [1.0, 2.7182817459106445]
    """

    def read(*arrays: Any) -> Reals:
        with np.errstate(all="ignore"):
            return np.asarray(text(*arrays))

    return read


exp = reading(elementary.exp)
expm1 = reading(elementary.expm1)
log = reading(elementary.log)
log1p = reading(elementary.log1p)
tanh = reading(elementary.tanh)
sigmoid = reading(elementary.sigmoid)
erf = reading(elementary.erf)
softplus = reading(elementary.softplus)
atan = reading(inverse.atan)
atan2 = reading(inverse.atan2)
asin = reading(inverse.asin)
acos = reading(inverse.acos)
sinh = reading(inverse.sinh)
cosh = reading(inverse.cosh)
asinh = reading(inverse.asinh)
acosh = reading(inverse.acosh)
atanh = reading(inverse.atanh)


def power(x: Reals, exponent: float) -> Reals:
    """``x ** exponent`` for a finite exponent that is not whole."""
    return reading(elementary.power)(x, x.dtype.type(exponent))


def sin(x: Reals) -> Reals:
    """The sine of angles of any size."""
    return _wave(trigonometry.sin_near, x, 0)


def cos(x: Reals) -> Reals:
    """The cosine of angles of any size."""
    return _wave(trigonometry.cos_near, x, 1)


def _wave(near: Callable[[Number], Number], x: Reals, quarters: int) -> Reals:
    """The formula of near angles, and after so many quarter turns the sine of each that is far."""
    known: Any = constants(cast(Any, x)).turns_known
    out = np.array(reading(near)(x))
    with np.errstate(all="ignore"):
        for at in map(tuple, np.argwhere(~(np.abs(x) <= known))):
            out[at] = _turned_far(x[at], quarters) if np.isfinite(x[at]) else np.nan
    return out


def _turned_far(x: Any, quarters: int) -> Any:
    wide, wide_low, quadrant = far(np.float64(x))
    r = x.dtype.type(wide)
    low = x.dtype.type((wide - np.float64(r)) + wide_low)
    turns: Any = np.array(quadrant + quarters, f"i{x.dtype.itemsize}")[()]
    return trigonometry.turned(x, r, low, turns)


def far(x: np.float64) -> tuple[Any, Any, int]:
    """What a finite x of at least 1 in size is more than a whole number of quarter turns, as a sum, and that number.

    By Python's whole numbers, where the kernel has words.
    """
    mantissa, exponent = (int(part) for part in np.frexp(abs(x)) * np.array([2.0**53, 1]))
    exponent -= 53
    places = int("".join(f"{int(word):064b}" for word in TWO_OVER_PI)[exponent + 62 : exponent + 62 + 192], 2)
    turns = (mantissa * places % 2**192) >> 62
    quadrant, rest = divmod(turns, 2**128)
    above = rest >= 2**127
    quadrant, rest = (quadrant + 1, 2**128 - 1 - rest) if above else (quadrant, rest)
    a, b, d, e = (np.float64(float(Fraction((rest >> 128 - 32 * k) % 2**32, 2 ** (32 * k)))) for k in (1, 2, 3, 4))
    whole = a + b
    part = ((a - whole) + b) + (d + e)
    share = whole + part
    left = (whole - share) + part
    r = share * FLOAT64.half_pi
    low = fma(share, FLOAT64.half_pi, -r) + (share * FLOAT64.half_pi_middle + left * FLOAT64.half_pi)
    r, low = (-r, -low) if above != (x < 0) else (r, low)
    return r, low, -quadrant if x < 0 else quadrant

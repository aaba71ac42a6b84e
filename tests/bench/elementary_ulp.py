"""The worst errors of the elementary functions: over every float32, and over tens of millions of float64.

Run it with ``python tests/bench/elementary_ulp.py``; it takes ten minutes on one core. float32 results are
held against libm in float64, float64 results against libm in 80-bit long double, both good to 1e-3 ULP of the
narrower type. An ULP is the spacing of the floats at the true value. Falls are neighbours between which the
function decreases.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dgrr.tape.numerics.math import elementary, inverse
from dgrr.tape.numerics.simd.operations import bits_of, float_of

FUNCTIONS = ("exp", "log", "tanh", "sigmoid", "log1p", "expm1", "erf", "softplus")
INVERSE = ("atan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh")
NUMPY = {name: f"arc{name[1:]}" for name in INVERSE if name.startswith("a")}
"""The names of numpy, where they are others."""
DOMAIN = {"asin": (-1.0, 1.0), "acos": (-1.0, 1.0), "acosh": (1.0, math.inf), "atanh": (-1.0, 1.0)}
"""Outside it a function has no value."""
ONLY_FLOAT32 = ("erf",)
"""Functions that numpy lacks in long double; the tests hold their float64 results against mpmath."""
Array = npt.NDArray[Any]
INFINITY_BITS = 0x7F800000
LN2 = math.log(2)
RANGES = {
    "exp": (-745.2, 709.8),
    "log": (0.0, 4.0),
    "tanh": (-20.0, 20.0),
    "sigmoid": (-745.2, 40.0),
    "log1p": (-1.0, 4.0),
    "expm1": (-40.0, 709.7),
    "softplus": (-745.2, 40.0),
    "atan": (-8.0, 8.0),
    "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0),
    "sinh": (-710.4, 710.4),
    "cosh": (-710.4, 710.4),
    "asinh": (-8.0, 8.0),
    "acosh": (1.0, 8.0),
    "atanh": (-1.0, 1.0),
}
CUTS = [0.5, math.sqrt(0.5), 1.0, math.sqrt(2.0), 0.625, 2.0, *(LN2 * (k + 0.5) for k in range(-8, 9))]


@njit
def wide_sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


@njit
def wide_softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


WIDE32 = {
    "exp": math.exp,
    "log": math.log,
    "tanh": math.tanh,
    "sigmoid": wide_sigmoid,
    "log1p": math.log1p,
    "expm1": math.expm1,
    "erf": math.erf,
    "softplus": wide_softplus,
    **{name: getattr(math, name) for name in INVERSE},
}


def compiled(name: str) -> Any:
    """The function of this name, for use in compiled code."""
    return getattr(inverse if name in INVERSE else elementary, name)


def scanner(function: Any, wide: Any) -> Callable[[int, int], tuple[float, float, int]]:
    """A compiled loop over float32 bit patterns: worst error, where, and the number of falls."""

    @njit(error_model="numpy")
    def scan(first: int, last: int) -> tuple[float, float, int]:
        worst, where, falls = 0.0, np.float32(0), 0
        before = function(float_of(np.int32(first)))
        for pattern in range(first, last):
            x = float_of(np.int32(pattern))
            y, true = function(x), wide(np.float64(x))
            falls += (y < before) if pattern >= 0 else (y > before)
            before = y
            if abs(true) < 3.4028235677973366e38 and true == true:
                exponent = max(((bits_of(true) >> 52) & 0x7FF) - 1023, -126)
                error = abs(np.float64(y) - true) * float_of((np.int64(1023) + 23 - exponent) << 52)
                if not error <= worst:
                    worst, where = error, x
        return worst, where, falls

    return scan


def every_float32(name: str) -> None:
    """Scan all finite float32 (for log, those above 0)."""
    scan, start = scanner(compiled(name), WIDE32[name]), time.time()
    results = [scan(int(name == "log"), INFINITY_BITS)]
    if name != "log":
        results.append(scan(-(2**31), INFINITY_BITS - 2**31))
    worst, where, _ = max(results)
    report("float32", name, worst, where, sum(falls for *_, falls in results), start)


def report(dtype: str, name: str, worst: float, where: float, falls: int, start: float) -> None:
    """Print one line."""
    seconds = time.time() - start
    print(f"{dtype} {name:8} worst {worst:.4f} ULP at {where}, {falls} falls, {seconds:.0f} s", flush=True)


def wide64(name: str, x: Array) -> Array:
    """The function in long double."""
    wide = x.astype(np.longdouble)
    if name == "sigmoid":
        return np.asarray(1 / (1 + np.exp(-wide)))
    if name == "softplus":
        return np.asarray(np.maximum(wide, 0) + np.log1p(np.exp(-abs(wide))))
    return np.asarray(getattr(np, NUMPY.get(name, name))(wide))


def samples64(name: str, rng: np.random.Generator, n: int) -> list[Array]:
    """Uniform samples where results vary, random bit patterns, runs of neighbours at the cuts."""
    patterns = rng.integers(0, 0x7FF0 << 48, n, np.int64).view(np.float64)
    signs = 1 if name == "log" else rng.choice([-1.0, 1.0], n)
    middle = (0.5, 1.5) if name == "log" else (-1.0, 1.5)
    cuts = [x for x in CUTS if name != "log" or x > 0]
    near = np.array(cuts).view(np.int64)[:, None] + np.arange(-2000, 2000)
    return [
        rng.uniform(*RANGES[name], n),
        rng.uniform(*middle, n),
        patterns * signs,
        near.view(np.float64).ravel(),
    ]


def many_float64(name: str, n: int = 10_000_000, chunk: int = 500_000) -> None:
    """Scan about 3 n float64."""
    start, worst, where, falls = time.time(), 0.0, 0.0, 0
    loop, rng = loop_over(compiled(name)), np.random.default_rng(0)
    for _ in range(n // chunk):
        for sample in samples64(name, rng, chunk):
            low, high = DOMAIN.get(name, (-math.inf, math.inf))
            x = np.sort(sample[(sample >= low) & (sample <= high)])
            y = np.empty_like(x)
            loop(x, y)
            falls += int(np.sum(y[1:] < y[:-1]))
            error = ulps(y, wide64(name, x))
            k = int(np.argmax(error))
            if error[k] > worst:
                worst, where = float(error[k]), float(x[k])
    report("float64", name, worst, where, falls, start)


def loop_over(function: Any) -> Callable[[Array, Array], None]:
    """A compiled loop that fills y with the function of x."""

    @njit(error_model="numpy")
    def loop(x: Array, y: Array) -> None:
        for i in range(x.size):
            y[i] = function(x[i])

    return loop


def ulps(y: Array, true: Array) -> Array:
    """Errors in units of the spacing at the true value, 0 where that overflows."""
    finite = np.abs(true) <= np.finfo(np.float64).max
    spacing = np.spacing(np.abs(np.where(finite, true, 1)).astype(np.float64))
    error = np.abs(np.where(finite, y - true, 0)) / spacing
    assert not np.isnan(error).any()
    return np.asarray(error)


if __name__ == "__main__":
    np.seterr(all="ignore")
    for each in (*FUNCTIONS, *INVERSE):
        if each not in ONLY_FLOAT32:
            many_float64(each)
    for each in (*FUNCTIONS, *INVERSE):
        every_float32(each)

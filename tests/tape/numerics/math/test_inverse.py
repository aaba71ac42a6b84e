"""atan, asin, acos, atan2 and the hyperbolic functions: error against mpmath, bits of the reference, special values."""

# numba's functions carry no types.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,call-arg"
# pyright: basic
from typing import Any

import mpmath
import numpy as np
import pytest
from numba import njit

from dgrr.tape import Tape, ops
from dgrr.tape.numerics.math import inverse
from dgrr.tape.numerics.math.reference import functions as reference

from .measured import bits, loop_over, ulps

DTYPES = (np.float32, np.float64)
MAX_ULP = {
    "atan": 0.85,
    "asin": 0.7,
    "acos": 0.7,
    "sinh": 2.0,
    "cosh": 1.2,
    "asinh": 1.8,
    "acosh": 2.6,
    "atanh": 2.1,
}
"""The documented bounds."""
MAX_ULP_ATAN2, MAX_ULP_TAN = 0.85, 2.2
ODD = ("atan", "asin", "sinh", "asinh", "atanh")
INF, NAN = np.inf, np.nan


LOOPS = {name: loop_over(getattr(inverse, name)) for name in MAX_ULP}


@njit(error_model="numpy")
def atan2_loop(a, b, out):
    for i in range(a.size):
        out[i] = inverse.atan2(a[i], b[i])


def evaluate(name: str, x: np.ndarray) -> np.ndarray:
    """The compiled function on an array; the output starts as junk."""
    y = np.full_like(x, 12345)
    LOOPS[name](x, y)
    return y


def evaluate_atan2(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.full_like(a, 12345)
    atan2_loop(a, b, out)
    return out


def worst(function: Any, y: np.ndarray, *given: np.ndarray) -> float:
    with mpmath.workprec(200):
        true = [function(*map(mpmath.mpf, map(float, row))) for row in zip(*given, strict=True)]
        return max(ulps(*pair) for pair in zip(y, true, strict=True))


def ranges(name: str, dtype: type, n: int) -> np.ndarray:
    """Where results vary, where formulas change, every binade of small numbers, and none outside the domain."""
    rng, info = np.random.default_rng(1), np.finfo(dtype)
    small = 2.0 ** rng.uniform(int(info.minexp) - 10, -1, n) * rng.choice([-1, 1], n)
    near_one = 1 - 2.0 ** rng.uniform(-info.nmant, 0, n)
    unit = [rng.uniform(-1, 1, n), near_one, -near_one, rng.uniform(0.49, 0.51, n)]
    wide = 2.0 ** rng.uniform(0, int(info.maxexp) - 1, n)
    most = 89.41 if dtype is np.float32 else 710.47
    parts = {
        "atan": [rng.uniform(-4, 4, n), wide, -wide, rng.uniform(0.41, 0.42, n), rng.uniform(2.4, 2.42, n)],
        "asin": unit,
        "acos": unit,
        "sinh": [rng.uniform(-3, 3, n), rng.uniform(-most, most, n), rng.uniform(most - 1, most, n)],
        "cosh": [rng.uniform(-3, 3, n), rng.uniform(-most, most, n), rng.uniform(most - 1, most, n)],
        "asinh": [rng.uniform(-3, 3, n), wide, 2.0**28 * rng.uniform(0.9, 1.1, n)],
        "acosh": [rng.uniform(1, 3, n), 1 + 2.0 ** rng.uniform(-info.nmant, 1, n), wide],
        "atanh": unit,
    }
    return np.concatenate([*parts[name], *([] if name == "acosh" else [small])]).astype(dtype)


CASES = [pytest.param((name, dtype), id=f"{name}-{dtype.__name__}") for name in MAX_ULP for dtype in DTYPES]


@pytest.fixture(params=CASES)
def case(request):
    """A function's name and a float type."""
    return request.param


def test_error(case):
    name, dtype = case
    x = ranges(name, dtype, 250)
    x = x[abs(x) < 1] if name in ("asin", "acos", "atanh") else x
    assert worst(getattr(mpmath, name), evaluate(name, x), x) <= MAX_ULP[name]


def points(dtype: type, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates near each other, far from each other, and near both ends of the range."""
    rng, info = np.random.default_rng(2), np.finfo(dtype)
    a, b = rng.uniform(-2, 2, (2, n)) * 2.0 ** rng.uniform(-30, 30, (2, n))
    alike = rng.uniform(0.1, 1, (2, n)) * rng.choice([-1.0, 1.0], (2, n))
    scales = (1.0, float(info.max), float(info.tiny) * 4)
    given = zip((a, b), alike, strict=True)
    return tuple(np.concatenate([x, *(row * s for s in scales)]).astype(dtype) for x, row in given)


@pytest.mark.parametrize("dtype", DTYPES)
def test_error_of_atan2(dtype):
    a, b = points(dtype, 250)
    assert worst(mpmath.atan2, evaluate_atan2(a, b), a, b) <= MAX_ULP_ATAN2


@pytest.mark.parametrize("dtype", DTYPES)
def test_error_of_tan(dtype):
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(-4, 4, 1000), 2.0 ** rng.uniform(-30, 60, 500)]).astype(dtype)
    assert worst(mpmath.tan, ops.tan(Tape[Any]().leaf(x)).numpy(), x) <= MAX_ULP_TAN


def random_patterns(dtype: type, n: int) -> np.ndarray:
    width = np.dtype(dtype).itemsize
    return np.random.default_rng(4).integers(0, 2 ** (8 * width), n, f"u{width}").view(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_atan2_has_the_bits_of_the_reference(dtype):
    a, b = points(dtype, 40)
    a, b = np.concatenate([a, random_patterns(dtype, 200)]), np.concatenate([b, random_patterns(dtype, 400)[200:]])
    np.testing.assert_array_equal(bits(evaluate_atan2(a, b)), bits(reference.atan2(a, b)))


HALF_PI = np.pi / 2
SPECIAL = {
    "atan": [(0, 0), (-0.0, -0.0), (1e-40, 1e-40), (1, np.pi / 4), (INF, HALF_PI), (-INF, -HALF_PI), (1e30, HALF_PI)],
    "asin": [(0, 0), (-0.0, -0.0), (1e-40, 1e-40), (1, HALF_PI), (-1, -HALF_PI), (1.5, NAN), (-INF, NAN)],
    "acos": [(0, HALF_PI), (-0.0, HALF_PI), (1, 0), (-1, np.pi), (1.5, NAN), (INF, NAN)],
    "sinh": [(0, 0), (-0.0, -0.0), (1e-40, 1e-40), (INF, INF), (-INF, -INF), (800, INF), (-800, -INF)],
    "cosh": [(0, 1), (-0.0, 1), (1e-40, 1), (INF, INF), (-INF, INF), (800, INF), (-800, INF)],
    "asinh": [(0, 0), (-0.0, -0.0), (1e-40, 1e-40), (INF, INF), (-INF, -INF)],
    "acosh": [(1, 0), (0.5, NAN), (-3, NAN), (-0.0, NAN), (INF, INF), (-INF, NAN)],
    "atanh": [(0, 0), (-0.0, -0.0), (1e-40, 1e-40), (1, INF), (-1, -INF), (1.5, NAN), (INF, NAN)],
}


def test_special_values(case):
    name, dtype = case
    x, expected = (np.array(column, dtype) for column in zip(*SPECIAL[name], (NAN, NAN), strict=True))
    np.testing.assert_array_equal(bits(evaluate(name, x)), bits(expected))


@pytest.mark.parametrize("dtype", DTYPES)
def test_atan2_of_special_points_is_that_of_ieee(dtype):
    row = np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN], dtype)
    a, b = np.repeat(row, row.size), np.tile(row, row.size)
    expected = np.arctan2(a.astype(np.float64), b.astype(np.float64)).astype(dtype)
    np.testing.assert_array_equal(bits(evaluate_atan2(a, b)), bits(expected))


def test_odd_functions_are_odd_to_the_bit():
    for name in ODD:
        for dtype in DTYPES:
            x = np.concatenate([random_patterns(dtype, 5000), np.linspace(0, 3, 5000, dtype=dtype)])
            np.testing.assert_array_equal(bits(evaluate(name, -x)), bits(-evaluate(name, x)))

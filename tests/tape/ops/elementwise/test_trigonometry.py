"""sin and cos of every size of angle: error against mpmath, bits of the reference, special values, neighbours."""

# numba's functions carry no types.
# mypy: disable-error-code="no-untyped-def"
# pyright: basic
from typing import Any

import mpmath
import numpy as np
import pytest

from dgrr.tape.numerics.coefficients import FLOAT32, FLOAT64
from dgrr.tape.numerics.engine.launch import Words, launch
from dgrr.tape.numerics.math.reference import functions as reference
from dgrr.tape.ops.elementwise.kernels import trigonometry as kernels_trigonometry

from ...numerics.math.measured import bits, ulps

MAX_ULP = 0.85
"""The documented bound."""
PRECISION = 1400
"""Bits in which the true value of any finite float64's sine comes out right."""

CASES = [
    pytest.param((name, dtype), id=f"{name}-{dtype.__name__}")
    for name in ("sin", "cos")
    for dtype in (np.float32, np.float64)
]
HARDEST = 6381956970095103.0 * 2.0**797
"""The float64 nearest to a multiple of pi / 2 (Muller, Elementary Functions)."""


@pytest.fixture(params=CASES)
def case(request: Any) -> Any:
    """A function's name and a float type."""
    return request.param


def evaluate(name: str, x: np.ndarray) -> np.ndarray:
    """The kernel on an array; the output starts as junk."""
    y = np.full_like(x, 12345)
    launch(getattr(kernels_trigonometry, name), x.dtype, Words(x.size), (y, x), 1)
    return y


def worst(name: str, x: np.ndarray) -> float:
    """The largest error in units of the float spacing at the true value."""
    found = 0.0
    with mpmath.workprec(PRECISION):
        for given, got in zip(x, evaluate(name, x), strict=True):
            true = getattr(mpmath, name)(mpmath.mpf(float(given)))
            found = max(found, ulps(got, true))
    return found


def multiples(count: int, low: float, high: float) -> np.ndarray:
    """Floats near whole multiples of pi / 2, whose number of quarter turns is 2 to a power between low and high."""
    turns = 2.0 ** np.random.default_rng(1).uniform(low, high, count)
    with mpmath.workprec(PRECISION):
        return np.array([float(mpmath.pi / 2 * int(n)) for n in turns])


def angles(dtype: type, n: int) -> np.ndarray:
    """Small ones, ordinary ones, those around the limit of the first reduction, and every binade."""
    rng, info = np.random.default_rng(2), np.finfo(dtype)
    every = 2.0 ** rng.uniform(int(info.minexp), int(info.maxexp) - 0.01, n) * rng.choice([-1, 1], n)
    limit = float((FLOAT32 if dtype is np.float32 else FLOAT64).turns_known)
    around = limit * rng.uniform(0.5, 2, n)
    return np.concatenate([rng.uniform(-1, 1, n), rng.uniform(-100, 100, n), around, every]).astype(dtype)


def test_error(case):
    name, dtype = case
    assert worst(name, angles(dtype, 300)) <= MAX_ULP


def test_error_near_multiples_of_a_quarter_turn(case):
    name, dtype = case
    top = int(np.finfo(dtype).maxexp) - 2
    x = np.concatenate([multiples(200, 0, 20), multiples(200, 20, 60), multiples(100, 60, top)]).astype(dtype)
    largest = [np.finfo(dtype).max, dtype(HARDEST) if dtype is np.float64 else dtype(2.0**100)]
    assert worst(name, np.concatenate([x, -x[:50], largest]).astype(dtype)) <= MAX_ULP


def test_bits_of_the_reference(case):
    name, dtype = case
    width = np.dtype(dtype).itemsize
    patterns = np.random.default_rng(3).integers(0, 2 ** (8 * width), 500, f"u{width}").view(dtype)
    x = np.concatenate([patterns, angles(dtype, 60), multiples(60, 0, 50).astype(dtype)])
    np.testing.assert_array_equal(bits(evaluate(name, x)), bits(getattr(reference, name)(x)))


def test_special_values(case):
    name, dtype = case
    zero = (0.0, -0.0) if name == "sin" else (1.0, 1.0)
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, tiny, -tiny], dtype)
    small = (tiny, -tiny) if name == "sin" else (1.0, 1.0)
    expected = np.array([*zero, np.nan, np.nan, np.nan, *small], dtype)
    np.testing.assert_array_equal(bits(evaluate(name, x)), bits(expected))


def test_symmetry_to_the_bit(case):
    name, dtype = case
    x = angles(dtype, 2000)
    mirrored = evaluate(name, x) * dtype(-1 if name == "sin" else 1)
    np.testing.assert_array_equal(bits(evaluate(name, -x)), bits(mirrored))


def test_an_angle_is_not_changed_by_its_neighbours(case):
    name, dtype = case
    x = np.linspace(-30, 30, 67, dtype=dtype)
    alone = evaluate(name, x)
    for place in range(67):
        beside = x.copy()
        beside[place] = dtype(3e30)
        got = evaluate(name, beside)
        others = np.arange(67) != place
        np.testing.assert_array_equal(bits(got[others]), bits(alone[others]))
        assert got[place] == evaluate(name, beside[place : place + 1])[0]

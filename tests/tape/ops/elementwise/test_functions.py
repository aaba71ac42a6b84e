"""log1p, expm1, erf, softplus and broken powers: error against mpmath, bits of the reference, special values."""

# numba's functions carry no types.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,call-arg"
# pyright: basic
from typing import Any

import mpmath
import numpy as np
import pytest
from numba import njit

from dgrr.tape.numerics import coefficients
from dgrr.tape.numerics.math import elementary
from dgrr.tape.numerics.math.reference import functions as reference

from ...numerics.math.measured import bits, loop_over, ulps

DTYPES = (np.float32, np.float64)
NAMES = ("log1p", "expm1", "erf", "softplus")
MAX_ULP = {"log1p": 0.85, "expm1": 1.1, "erf": 1.3, "softplus": 1.6, "power": 0.8}
"""The documented bounds."""
INF, NAN = np.inf, np.nan


LOOPS = {name: loop_over(getattr(elementary, name)) for name in NAMES}


@njit(error_model="numpy")
def power_loop(x, y, exponent):
    for i in range(x.size):
        y[i] = elementary.power(x[i], exponent)


def evaluate(name: str, x: np.ndarray, exponent: float | None = None) -> np.ndarray:
    """The compiled function on an array; the output starts as junk."""
    y = np.full_like(x, 12345)
    if exponent is None:
        LOOPS[name](x, y)
    else:
        power_loop(x, y, x.dtype.type(exponent))
    return y


def true_value(name: str, x: mpmath.mpf, exponent: Any) -> mpmath.mpf:
    with mpmath.workprec(200):
        if name == "power":
            return mpmath.power(x, mpmath.mpf(float(exponent)))
        if name == "softplus":
            return mpmath.log1p(mpmath.exp(x))
        return getattr(mpmath, name)(x)


def worst(name: str, x: np.ndarray, exponent: float | None = None) -> float:
    """The largest error in units of the float spacing at the true value, where that does not overflow."""
    info, found = np.finfo(x.dtype), 0.0
    rounded = None if exponent is None else x.dtype.type(exponent)
    for given, got in zip(x, evaluate(name, x, exponent), strict=True):
        true = true_value(name, mpmath.mpf(float(given)), rounded)
        if abs(true) < float(info.max):
            assert np.isfinite(got)
            found = max(found, ulps(got, true))
    return found


def ranges(name: str, dtype: type, n: int) -> np.ndarray:
    """Every binade of small numbers, and where results vary."""
    rng, info = np.random.default_rng(1), np.finfo(dtype)
    small = 2.0 ** rng.uniform(int(info.minexp) - 10, 0, n) * rng.choice([-1, 1], n)
    parts = {
        "log1p": [rng.uniform(-0.9999, 3, n), 2.0 ** rng.uniform(0, int(info.maxexp) - 1, n)],
        "expm1": [rng.uniform(-1, 1, n), rng.uniform(-40, 88, n), rng.uniform(-0.5, 0.5, n)],
        "erf": [rng.uniform(-1, 1, n), rng.uniform(0.8, 2, n), rng.uniform(-6.2, 6.2, n)],
        "softplus": [rng.uniform(-3, 3, n), rng.uniform(-100, 88, n)],
    }
    return np.concatenate([small, *parts[name]]).astype(dtype)


CUTS = {
    "log1p": [np.sqrt(0.5) - 1, np.sqrt(2) - 1, 1.0, -1.0 + 2.0**-18, 2.0**-24, 2.0**-53],
    "expm1": [0.34657359, -0.34657359, 1.0397208, 2.0**-25, 2.0**-54, -17.3, -37.4, -60.0],
    "erf": [0.875, 3.92, 4.0, 5.92, 6.0],
    "softplus": [0.0, 17.3, 36.7, -17.3, -103.9],
}
"""Where a formula changes, or results become constant."""


def near_cuts(name: str, dtype: type, reach: int = 30) -> np.ndarray:
    patterns = np.array(CUTS[name], dtype).view(f"i{np.dtype(dtype).itemsize}")[:, None]
    return (patterns + np.arange(-reach, reach + 1).astype(patterns.dtype)).view(dtype).ravel()


CASES = [pytest.param((name, dtype), id=f"{name}-{dtype.__name__}") for name in NAMES for dtype in DTYPES]


@pytest.fixture(params=CASES)
def case(request):
    """A function's name and a float type."""
    return request.param


def test_error(case):
    name, dtype = case
    assert worst(name, np.concatenate([ranges(name, dtype, 500), near_cuts(name, dtype)])) <= MAX_ULP[name]


EXPONENTS = (0.5, -0.5, 1.5, 0.1, 17.3, -33.7, 1e-3, 7001.5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_error_of_powers(dtype, exponent):
    rng, info = np.random.default_rng(2), np.finfo(dtype)
    wide = 2.0 ** rng.uniform(int(info.minexp) - int(info.nmant), int(info.maxexp) - 1, 300)
    x = np.concatenate([wide, rng.uniform(0.9, 1.1, 200), rng.uniform(0.5, 3, 200)]).astype(dtype)
    assert worst("power", x, exponent) <= MAX_ULP["power"]


def test_bits_of_the_reference(case):
    name, dtype = case
    x = np.concatenate([random_patterns(dtype, 500), ranges(name, dtype, 60), near_cuts(name, dtype, 3)])
    np.testing.assert_array_equal(bits(evaluate(name, x)), bits(getattr(reference, name)(x)))


def random_patterns(dtype: type, n: int) -> np.ndarray:
    width = np.dtype(dtype).itemsize
    return np.random.default_rng(3).integers(0, 2 ** (8 * width), n, f"u{width}").view(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_have_the_bits_of_the_reference(dtype, exponent):
    x = np.concatenate([random_patterns(dtype, 200), np.linspace(0.5, 2, 60, dtype=dtype)])
    expected = reference.power(x, exponent)
    np.testing.assert_array_equal(bits(evaluate("power", x, exponent)), bits(expected))


SPECIAL = {
    "log1p": [(0, 0), (-0.0, -0.0), (1e-40, 1e-40), (-1, -INF), (-1.5, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)],
    "expm1": [(0, 0), (-0.0, -0.0), (1e-40, 1e-40), (INF, INF), (-INF, -1), (-800, -1), (800, INF), (NAN, NAN)],
    "erf": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (7, 1), (-7, -1), (NAN, NAN)],
    "softplus": [(INF, INF), (-INF, 0), (1000, 1000), (-1000, 0), (NAN, NAN)],
}


def test_special_values(case):
    name, dtype = case
    x, expected = (np.array(column, dtype) for column in zip(*SPECIAL[name], strict=True))
    np.testing.assert_array_equal(bits(evaluate(name, x)), bits(expected))


POWERS = [
    (0.5, [(0, 0), (-0.0, 0), (INF, INF), (-INF, INF), (-1, NAN), (1, 1), (4, 2), (NAN, NAN)]),
    (-0.5, [(0, INF), (-0.0, INF), (INF, 0), (-INF, 0), (-1, NAN), (1, 1), (4, 0.5), (NAN, NAN)]),
    (1000.5, [(2, INF), (0.25, 0), (1, 1), (-2, NAN)]) ,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("exponent", "pairs"), POWERS)
def test_powers_of_special_values_are_those_of_ieee(dtype, exponent, pairs):
    if exponent == 1000.5:
        pairs = [(x if dtype is np.float32 else x**2.0 if x > 0 else x, y) for x, y in pairs]
    x, expected = (np.array(column, dtype) for column in zip(*pairs, strict=True))
    np.testing.assert_array_equal(bits(evaluate("power", x, exponent)), bits(expected))


@pytest.mark.parametrize("name", ["erf", "expm1", "log1p"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_neighbours_never_fall(name, dtype):
    rng = np.random.default_rng(5)
    starts = np.array([*CUTS[name], *rng.uniform(0, 3, 40)]).astype(dtype)
    x = np.sort(
        (starts.view(f"i{starts.itemsize}")[:, None] + np.arange(1000).astype(f"i{starts.itemsize}")).view(dtype)
    )
    y = evaluate(name, x.ravel()).reshape(x.shape)
    assert not (np.diff(y, axis=1) < 0).any()


def test_erf_is_odd_to_the_bit():
    for dtype in DTYPES:
        x = np.concatenate([random_patterns(dtype, 20_000), np.linspace(0, 7, 20_000, dtype=dtype)])
        x = x[~np.isnan(x)]
        np.testing.assert_array_equal(bits(evaluate("erf", -x)), bits(-evaluate("erf", x)))


def test_the_places_of_two_over_pi():
    with mpmath.workprec(1500):
        expected = int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** 1216))
    assert int("".join(f"{int(word):064b}" for word in coefficients.TWO_OVER_PI), 2) == expected
    assert len(coefficients.TWO_OVER_PI) == 20


@pytest.mark.parametrize("c", [coefficients.FLOAT32, coefficients.FLOAT64])
def test_constants_in_parts_are_the_true_numbers_rounded(c):
    dtype = type(c.half_pi)
    with mpmath.workprec(400):
        for true, parts in (
            (mpmath.pi / 2, (c.half_pi, c.half_pi_middle, c.half_pi_low)),
            (mpmath.mpf(2) / 3, (c.two_thirds, c.two_thirds_low)),
            (2 / mpmath.pi, (c.two_over_pi,)),
        ):
            left = true
            for part in parts:
                assert part == dtype(float(left))
                left = left - mpmath.mpf(float(part))

"""Powers of elements by elements: error against mpmath, bits of the reference, IEEE-754's cases, torch's gradients."""

# numba's functions carry no types.
# mypy: disable-error-code="no-untyped-def"
# pyright: basic
import math
from typing import Any

import mpmath
import numpy as np
import pytest

from dgrr.tape import Tape, ops
from dgrr.tape.numerics.math.reference import functions as reference

from ...numerics.math.measured import bits, ulps

DTYPES = (np.float32, np.float64)
MAX_ULP = 0.85
"""The documented bound."""
INF, NAN = np.inf, np.nan


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


def by_cases(x: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """``x ** exponent``, the cases of IEEE-754's pow one after another: a text beside the formula's."""
    out = np.empty_like(x)
    with np.errstate(all="ignore"):
        for at in np.ndindex(x.shape):
            out[at] = _pow(x[at], exponent[at])
    return out


def evaluate(x: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    return ops.pow(Tape[Any]().leaf(x), exponent).numpy()


def pairs(dtype: type, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Small powers, powers anywhere between the smallest and the largest float, bases next to 1."""
    rng, info = np.random.default_rng(0), np.finfo(dtype)
    wide = 2.0 ** rng.uniform(int(info.minexp) - int(info.nmant), int(info.maxexp) - 1, n)
    top = rng.uniform(int(info.minexp) - int(info.nmant), int(info.maxexp) - 1, n)
    near = 1 + rng.uniform(-1, 1, n) * 2.0 ** rng.uniform(-info.nmant, -3, n)
    x = np.concatenate([rng.uniform(0.1, 4, n), wide, near]).astype(dtype)
    with np.errstate(divide="ignore"):
        powers = np.concatenate([top[:n], top, top]) / np.log2(x.astype(np.float64))
    powers = np.concatenate([rng.uniform(-8, 8, n), powers[n:]])
    return x, np.where(np.isfinite(powers), powers, 3.0).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_error(dtype):
    x, exponent = pairs(dtype, 600)
    info, found = np.finfo(dtype), 0.0
    for base, power, got in zip(x, exponent, evaluate(x, exponent), strict=True):
        with mpmath.workprec(200):
            true = mpmath.power(mpmath.mpf(float(base)), mpmath.mpf(float(power)))
        if true < float(info.max):
            found = max(found, ulps(got, true))
    assert found <= MAX_ULP


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_of_the_reference(dtype):
    width = np.dtype(dtype).itemsize
    patterns = np.random.default_rng(1).integers(0, 2 ** (8 * width), (2, 300), f"u{width}").view(dtype)
    x, exponent = pairs(dtype, 60)
    x, exponent = np.concatenate([patterns[0], x]), np.concatenate([patterns[1], exponent])
    np.testing.assert_array_equal(bits(evaluate(x, exponent)), bits(by_cases(x, exponent)))


BASES = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, INF, -INF, NAN)
EXPONENTS = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 8388607.0, 16777216.0, INF, -INF, NAN)


def ieee(x: float, exponent: float) -> float:
    """Python's pow, which is that of C, with its infinities and NaN in place of its errors."""
    try:
        return math.pow(x, exponent)
    except ZeroDivisionError:
        raise AssertionError from None
    except OverflowError:
        return -INF if x < 0 and exponent % 2 == 1 else INF
    except ValueError:  # of 0 to a negative power, or of a negative number to a broken one
        odd = abs(exponent) < 2**53 and exponent % 2 == 1
        return NAN if x else math.copysign(INF, x) if odd else INF


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_cases_are_those_of_ieee(dtype):
    x, exponent = np.repeat(BASES, len(EXPONENTS)), np.tile(EXPONENTS, len(BASES))
    expected = np.array([ieee(*pair) for pair in zip(x.tolist(), exponent.tolist(), strict=True)])
    with np.errstate(over="ignore"):
        expected = expected.astype(dtype)
    np.testing.assert_array_equal(bits(evaluate(x.astype(dtype), exponent.astype(dtype))), bits(expected))


@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_powers_are_exact(dtype):
    x, exponent = np.repeat(np.arange(-12.0, 13.0), 6), np.tile(np.arange(6.0), 25)
    expected = [float(int(a) ** int(b)) for a, b in zip(x, exponent, strict=True)]
    assert evaluate(x.astype(dtype), exponent.astype(dtype)).tolist() == expected


@pytest.mark.parametrize(
    ("x", "exponent", "by_x", "by_exponent"),
    [
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 2.0, 0.0, 0.0),
        (0.0, 1.0, 1.0, 0.0),
        (0.0, 0.5, INF, 0.0),
        (0.0, -1.0, -INF, -INF),
        (-2.0, 3.0, 12.0, NAN),
        (-2.0, 0.0, 0.0, NAN),
        (INF, 0.0, 0.0, INF),
        (NAN, 0.0, 0.0, NAN),
        (2.0, 3.0, 12.0, 8 * math.log(2)),
    ],
)  # fmt: skip
def test_gradients_where_a_formula_alone_is_not_enough(x, exponent, by_x, by_exponent):
    tape: Tape[Any] = Tape()
    base, power = tape.leaf([x]), tape.leaf([exponent])
    grads = tape.backward_dense((base**power).sum())
    np.testing.assert_allclose(np.asarray(grads[base]), [by_x], rtol=1e-15)
    np.testing.assert_allclose(np.asarray(grads[power]), [by_exponent], rtol=1e-15)

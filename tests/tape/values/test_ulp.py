"""Distances in ULP against numpy's ``nextafter``, exact text against Python's own ``hex``."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape.values.ulp import FARTHEST, exact, same_bits, ulp_distance

FLOATS = (np.float32, np.float64)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("start", [0.0, 1.0, -1.0, 1e-45, 3e38, -5e-324])
@pytest.mark.parametrize("steps", [0, 1, 7])
def test_steps_of_nextafter_are_counted(dtype: Any, start: float, steps: int) -> None:
    a = b = dtype(start)
    for _ in range(steps):
        b = np.nextafter(b, dtype(-np.inf))
    assert ulp_distance(a, b) == ulp_distance(b, a) == steps


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(dtype: Any) -> None:
    largest, inf, nan = np.finfo(dtype).max, dtype(np.inf), dtype(np.nan)
    assert ulp_distance(dtype(0.0), dtype(-0.0)) == 0
    assert ulp_distance(largest, inf) == 1
    assert ulp_distance(nan, -nan) == 0
    assert ulp_distance(nan, inf) == ulp_distance(dtype(1), nan) == FARTHEST
    assert ulp_distance(-inf, inf) == 2 * int(np.array(np.inf, dtype).view(f"u{dtype().itemsize}"))


def test_exact_text() -> None:
    assert exact(np.float64(0.1)) == f"0.1 ({(0.1).hex()}, bits 3fb999999999999a)"
    assert exact(np.float32(-0.0)) == "-0.0 (-0x0.0p+0, bits 80000000)"
    assert exact(np.int64(7)) == "7"
    assert exact(np.bool_(True)) == "True"


@pytest.mark.parametrize("dtype", FLOATS)
def test_same_bits(dtype: Any) -> None:
    a = np.array([0.0, 0.0, np.nan, 1.0, np.nan], dtype)
    b = np.array([0.0, -0.0, -np.nan, np.nan, 1.0], dtype)
    assert same_bits(a, b).tolist() == [True, False, True, False, False]
    assert same_bits(a.reshape(5, 1).T, b.reshape(1, 5)).shape == (1, 5)
    assert same_bits(a[0], a[0]).shape == ()
    assert same_bits(np.array([1, 2]), np.array([1, 3])).tolist() == [True, False]

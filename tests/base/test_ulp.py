"""Distances in ULP against numpy's ``nextafter``, exact text against Python's own ``hex``."""

import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dgrr.base.ulp import FARTHEST, exact, same_bits, ulp_distance, ulp_distances

FLOATS = (np.float32, np.float64)
NUMBERS = st.floats(allow_nan=False)


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


def test_distances_of_an_array() -> None:
    one = np.float32(1)
    a = np.array([1, 0, 0, np.nan, np.nan, 1, -1], np.float32)
    b = np.array([np.nextafter(one, np.float32(2)), -0.0, 1e-45, np.nan, 1, np.inf, 1], np.float32)
    expected = [1, 0, 1, 0, 2**64 - 1, 0x7F800000 - 0x3F800000, 2 * 0x3F800000]
    assert ulp_distances(a, b).tolist() == expected
    assert ulp_distances(a.reshape(7, 1)[::2].T, b.reshape(7, 1)[::2].T).tolist() == [expected[::2]]


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


@given(NUMBERS, NUMBERS)
def test_distance_is_symmetric_and_zero_only_for_equal_numbers(a: float, b: float) -> None:
    assert ulp_distance(a, b) == ulp_distance(b, a)
    assert (ulp_distance(a, b) == 0) == (a == b)


@given(st.lists(NUMBERS, min_size=3, max_size=3))
def test_distances_add_up_along_the_line(values: list[float]) -> None:
    low, middle, high = sorted(values)
    assert ulp_distance(low, high) == ulp_distance(low, middle) + ulp_distance(middle, high)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_neighbours_are_at_distance_one(value: float) -> None:
    assert ulp_distance(value, math.nextafter(value, math.inf)) == 1
    assert ulp_distance(value, math.nextafter(value, -math.inf)) == 1


@given(st.integers(0, 0x7FF << 52), st.integers(0, 0x7FF << 52))
def test_distance_counts_the_bits_of_one_sign(a: int, b: int) -> None:
    def number(bits: int) -> float:
        value: float
        (value,) = struct.unpack("<d", struct.pack("<Q", bits))
        return value

    assert ulp_distance(number(a), number(b)) == abs(a - b)
    assert ulp_distance(number(a | 2**63), number(b)) == a + b


def test_zeros_coincide_and_the_farthest_fit() -> None:
    assert ulp_distances(np.array([0.0, -math.inf]), np.array([-0.0, math.inf])).tolist() == [
        0,
        2 * 0x7FF << 52,
    ]


def test_powers_of_two_without_a_sign_are_apart_by_their_exponents() -> None:
    small = pytest.importorskip("ml_dtypes").float8_e8m0fnu
    a, b = (np.array(bytes_, np.uint8).view(small) for bytes_ in ([0, 127, 254, 255], [255, 128, 0, 255]))
    assert ulp_distances(a, b).tolist() == [FARTHEST, 1, 254, 0]
    assert same_bits(a, b).tolist() == [False, False, False, True]

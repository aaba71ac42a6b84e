"""fma of whole arrays against single numbers: anything, cancellation, the ends of the range, broadcasts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dgrr.tape.numerics.exact_fma import fma

pytestmark = pytest.mark.quick

FLOATS = (np.float32, np.float64)


def words(array: Any) -> list[int]:
    """The bits of floats, one pattern for all NaN."""
    kind = np.uint32 if array.dtype == np.float32 else np.uint64
    return [-1 if np.isnan(x) else int(x.view(kind)) for x in array.ravel()]


def check(dtype: Any, triples: Any) -> None:
    a, b, c = (np.array(column, dtype) for column in zip(*triples, strict=True))
    with np.errstate(all="ignore"):
        expected = np.array([fma(x, y, z) for x, y, z in zip(a, b, c, strict=True)], dtype)
    result = fma(a, b, c)
    assert result.dtype == dtype
    assert words(result) == words(expected)


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
@settings(max_examples=150)
def test_any_three_floats(dtype: Any, data: Any) -> None:
    x = st.floats(width=32 if dtype == np.float32 else 64)
    check(dtype, data.draw(st.lists(st.tuples(x, x, x), min_size=1, max_size=30)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_that_all_but_cancel(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 3000)).astype(dtype)
    c = -(a * b)
    for step in range(-3, 4):
        moved = c
        for _ in range(abs(step)):
            moved = np.nextafter(moved, dtype(np.sign(step) * np.inf))
        check(dtype, list(zip(a[:400], b[:400], moved[:400], strict=True)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_ties_and_their_neighbours(dtype: Any) -> None:
    """Sums halfway between two floats, and a hair to either side: what rounding twice gets wrong."""
    eps = float(np.finfo(dtype).eps)
    halves = [(sign * (1 + eps * k), eps / 2, 1 + eps * j) for sign in (1, -1) for k in (-1, 0, 1) for j in range(4)]
    check(dtype, halves)
    check(dtype, [(a * 2.0**40, b * 2.0**-40, c) for a, b, c in halves])


@pytest.mark.parametrize("dtype", FLOATS)
def test_shapes_broadcast(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.standard_normal(shape).astype(dtype) for shape in ((4, 1), (1, 3), (4, 3)))
    with np.errstate(all="ignore"):
        expected = np.array([[fma(a[i, 0], b[0, j], c[i, j]) for j in range(3)] for i in range(4)], dtype)
    assert words(fma(a, b, c)) == words(expected)
    assert fma(a[:0], b, c[:0]).shape == (0, 3)

"""The kernel that looks for infinities and NaN."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape.numerics.basic.finite import BLOCK, finite
from dgrr.tape.numerics.engine.launch import Words

pytestmark = pytest.mark.quick

FLOATS = (np.float32, np.float64)
PARTS = (1, 2, 7)
SIZES = (1, 2, 15, 16, 17, 63, 64, 65, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5)


def extremes(n: int, dtype: Any) -> Any:
    """Finite numbers whose bits come closest to those of infinities."""
    info = np.finfo(dtype)
    kinds = [info.max, -info.max, 0.0, -0.0, info.smallest_subnormal, -info.smallest_subnormal, info.tiny, -1.0]
    return np.resize(np.array(kinds, dtype), n)


def culprits(dtype: Any) -> Any:
    """Infinities and NaN: quiet and signalling, of both signs, with the smallest payloads and the largest."""
    if dtype == np.float32:
        patterns: Any = [0x7F800000, 0xFF800000, 0x7F800001, 0xFF800001, 0x7FC00000, 0xFFFFFFFF, 0x7FFFFFFF]
        return np.array(patterns, np.uint32).view(dtype)
    patterns = [0x7FF << 52, 0xFFF << 52, (0x7FF << 52) + 1, (0xFFF << 52) + 1, 0x7FF8 << 48, (1 << 64) - 1]
    return np.array(patterns, np.uint64).view(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("parts", PARTS)
def test_finite_numbers_pass(run: Any, dtype: Any, parts: int) -> None:
    for n in (0, *SIZES):
        assert run(finite, Words(n), [extremes(n, dtype)], parts) == 0


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("parts", PARTS)
def test_the_first_culprit_is_named(run: Any, dtype: Any, parts: int) -> None:
    for n in SIZES:
        for position in {0, 1 % n, n // 3, n // 2, n - 1}:
            for culprit in culprits(dtype):
                x = extremes(n, dtype)
                x[position] = culprit
                x[position + 1 :: 3] = np.nan
                assert run(finite, Words(n), [x], parts) == position + 1


def test_elements_beyond_the_end_are_not_seen(run: Any) -> None:
    x = np.full(100, np.nan, np.float32)
    x[:37] = 1
    assert run(finite, Words(37), [x]) == 0
    assert run(finite, Words(38), [x]) == 38

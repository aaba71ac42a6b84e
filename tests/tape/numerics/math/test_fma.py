"""fma, compiled and by the reference, against exact fractions."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numba import from_dtype, njit

from dgrr.tape.numerics.engine.numba_compiler import compiling
from dgrr.tape.numerics.exact_fma import fma as reference_fma
from dgrr.tape.numerics.simd import operations

HALF_ULP_OF_128 = 2.0**-17
BELOW_ONE = (1 + 2.0**-23, 1 - 2.0**-23)  # their product is 1 - 2**-46


@njit
def compiled_fma(a, b, c):
    return operations.fma(a, b, c)


@cache
def fma_for_the_level(dtype):
    """Compiled as kernels are."""
    with compiling():
        compiled_fma.compile((from_dtype(np.dtype(dtype)),) * 3)
    return compiled_fma


def bits(x) -> bytes:
    """The bytes of a float, one pattern for all NaN."""
    return b"nan" if np.isnan(x) else x.tobytes()


def both(dtype, a, b, c):
    """The two implementations' common answer."""
    operands = dtype(a), dtype(b), dtype(c)
    with np.errstate(all="ignore"):
        expected = reference_fma(*operands)
    result = dtype(fma_for_the_level(dtype)(*operands))
    assert type(expected) is dtype
    assert bits(result) == bits(expected), (operands, result, expected)
    return result


def triples(width: int) -> st.SearchStrategy[tuple[float, float, float]]:
    """Any three floats, or three of which the third all but cancels the product."""
    dtype = np.dtype(f"float{width}").type
    anything = st.floats(width=width)
    moderate = st.floats(-4, 4, width=width)

    def cancelling(a: float, b: float, steps: int) -> tuple[float, float, float]:
        c = -dtype(a) * dtype(b)
        for _ in range(abs(steps)):
            c = np.nextafter(c, dtype(np.sign(steps) * 8))
        return a, b, float(c)

    return st.tuples(anything, anything, anything) | st.builds(cancelling, moderate, moderate, st.integers(-3, 3))


@given(triples(32))
@settings(max_examples=600)
def test_float32(operands):
    both(np.float32, *operands)


@given(triples(64))
@settings(max_examples=600)
def test_float64(operands):
    result = both(np.float64, *operands)
    a, b, c = operands
    if np.isfinite(operands).all():
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        try:
            assert result == float(exact)  # CPython rounds the division of integers correctly
        except OverflowError:
            assert np.isinf(result)


@pytest.mark.parametrize("sign", [1, -1])
def test_float32_is_not_rounded_twice(sign):
    """In float64 these sums are halfway between two float32; in truth they are just below or above."""
    a, b = BELOW_ONE
    odd, above = 128 + 2 * HALF_ULP_OF_128, 128 + 4 * HALF_ULP_OF_128
    assert np.float32(float(np.float32(a)) * float(np.float32(b)) * HALF_ULP_OF_128 + odd) == np.float32(above)
    assert both(np.float32, sign * a, b * HALF_ULP_OF_128, sign * odd) == np.float32(sign * odd)
    assert both(np.float32, -sign * a, b * HALF_ULP_OF_128, sign * odd) == np.float32(sign * odd)
    assert both(np.float32, -sign * a, b * HALF_ULP_OF_128, sign * above) == np.float32(sign * above)
    assert both(np.float32, sign * a, b * HALF_ULP_OF_128, sign * 128) == np.float32(sign * 128)


@pytest.mark.parametrize(("dtype", "tiny"), [(np.float32, 2.0**-149), (np.float64, 2.0**-1074)])
def test_subnormal_results(dtype, tiny):
    above_one = 1 + float(np.finfo(dtype).eps)
    assert bits(both(dtype, tiny, 0.5, 0.0)) == bits(dtype(0))  # a tie, to even
    assert bits(both(dtype, tiny, -0.5, 0.0)) == bits(dtype(-0.0))
    assert both(dtype, tiny * 2**30, above_one * 2.0**-31, 0.0) == dtype(tiny)
    assert both(dtype, tiny, 1.5, 0.0) == dtype(2 * tiny)
    assert both(dtype, tiny * 3, 0.5, tiny) == dtype(2 * tiny)  # 2.5, a tie to even
    assert both(dtype, tiny * 3, 0.5, 2 * tiny) == dtype(4 * tiny)  # 3.5


@pytest.mark.parametrize(("dtype", "exponent"), [(np.float32, -149), (np.float64, -1074)])
def test_subnormal_results_are_not_rounded_twice(dtype, exponent):
    """With the mantissa of normal numbers these sums are halfway between two subnormals."""
    tiny, eps = 2.0**exponent, float(np.finfo(dtype).eps)
    first = (exponent - 1) // 2
    a, b = (1 + eps) * 2.0**first, (1 - eps) * 2.0 ** (exponent - 1 - first)  # just below tiny / 2
    assert both(dtype, a, b, tiny) == dtype(tiny)
    assert both(dtype, -a, b, 3 * tiny) == dtype(3 * tiny)
    assert both(dtype, a, b, 0.0) == 0
    assert both(dtype, a * (1 + eps), b, 0.0) == dtype(tiny)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values(dtype):
    info, inf, nan = np.finfo(dtype), np.inf, np.nan
    huge, half_ulp = float(info.max), 2.0 ** float(info.maxexp - info.nmant - 2)
    assert both(dtype, huge, 2.0, -huge) == dtype(huge)
    assert both(dtype, huge, 2.0, -inf) == -inf
    assert both(dtype, huge, 2.0, 0.0) == inf
    assert both(dtype, huge, 1.0, half_ulp) == inf  # a tie, to even
    assert both(dtype, huge, 1.0, float(np.nextafter(dtype(half_ulp), dtype(0)))) == dtype(huge)
    assert bits(both(dtype, 0.0, -1.0, -0.0)) == bits(dtype(-0.0))
    assert bits(both(dtype, 0.0, -1.0, 0.0)) == bits(dtype(0.0))
    assert bits(both(dtype, 3.0, -1.0, 3.0)) == bits(dtype(0.0))
    for operands in ((inf, 0.0, 1.0), (inf, 1.0, -inf), (nan, 1.0, 1.0), (1.0, nan, 1.0), (1.0, 1.0, nan)):
        assert np.isnan(both(dtype, *operands))

"""Exact arithmetic of attributes against IEEE's own, which is rounded to nearest where nobody changed the mode."""

import math

import pytest
from hypothesis import given, strategies as st

from dgrr.tape.numerics.math.exact import root


@given(st.floats(min_value=0, allow_infinity=False, allow_nan=False))
def test_roots_are_rounded_to_nearest(x: float) -> None:
    assert root(x) == math.sqrt(x)


@pytest.mark.parametrize("x", [0.0, 5e-324, 2.2250738585072014e-308, 0.1, 1.0, 2.0, 3.0, 9.0, 1.7976931348623157e308])
def test_roots_at_the_ends_of_the_range(x: float) -> None:
    assert root(x) == math.sqrt(x)

"""How close two runs must be: texts, patterns, and what each tolerance allows."""

import math
import re
from typing import Any

import numpy as np
import pytest

from dgrr.trace import Policy
from dgrr.trace.comparing.policy import BITWISE, Tolerance

ONE = np.float32(1)
NEXT = np.nextafter(ONE, np.float32(2))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bitwise", BITWISE),
        ("ulp=4", Tolerance(ulp=4)),
        ("ulp=0", Tolerance(ulp=0)),
        ("rtol=1e-5", Tolerance(rtol=1e-5)),
        ("rtol=1e-5,atol=1e-8", Tolerance(rtol=1e-5, atol=1e-8)),
        (" atol = 0.5 ", Tolerance(atol=0.5)),
    ],
)
def test_texts(text: str, expected: Tolerance) -> None:
    policy = Policy.parse(text)
    assert policy.of("any.tensor") == expected
    assert policy.bitwise is (expected is BITWISE)
    assert Policy.parse(str(policy)) == policy
    assert Policy.parse(policy) is policy


OTHERS = ("", "ulps=4", "ulp", "ulp=-1", "ulp=1.5", "ulp=4,rtol=1", "ulp=1,ulp=2", "ulp=²", 4, None)


@pytest.mark.parametrize("text", OTHERS)
def test_other_texts_are_refused(text: Any) -> None:
    expected = "'bitwise', 'ulp=4' or 'rtol=1e-5,atol=1e-8', or a dict of tensor patterns to these; or 'drift'"
    with pytest.raises(ValueError, match=f"^policy: expected {expected}; got {re.escape(repr(text))}$"):
        Policy.parse(text)


@pytest.mark.parametrize("value", ["nan", "inf", "-1e-5", "x", ""])
def test_bounds_are_finite_and_not_negative(value: str) -> None:
    text = f"^policy for 'w': rtol: expected a finite number of at least 0, got {value!r}$"
    with pytest.raises(ValueError, match=text):
        Policy.parse({"w": f"atol=1,rtol={value}"})


def test_patterns() -> None:
    policy = Policy.parse({"*.bias": "ulp=4", "fc?.*": "rtol=0.5", "[ab]": "ulp=0"})
    found = [str(policy.of(name)) for name in ("fc1.bias", "fc1.weight", "FC1.weight", "a", "c", "loss")]
    assert found == ["ulp=4", "rtol=0.5", "bitwise", "ulp=0", "bitwise", "bitwise"]
    assert str(policy) == "*.bias: ulp=4, fc?.*: rtol=0.5, [ab]: ulp=0"
    assert not policy.bitwise
    assert Policy.parse({}).bitwise
    assert Policy.parse({"w": "bitwise"}).bitwise


def test_what_is_no_pattern_or_no_tolerance_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"policy for 'w': expected 'bitwise', 'ulp=4' or 'rtol=1e-5,atol=1e-8'; got 4"
    ):
        Policy.parse({"w": 4})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match=r"policy: expected patterns of names of tensors, such as '\*.bias', got 4"):
        Policy.parse({4: "ulp=4"})  # type: ignore[dict-item]


def differs(tolerance: Tolerance, a: Any, b: Any, dtype: type = np.float32) -> bool:
    return bool(tolerance.differs(np.array([a], dtype), np.array([b], dtype))[0])


@pytest.mark.parametrize(
    ("a", "b", "bits", "ulp", "close"),
    [
        (ONE, ONE, False, False, False),
        (ONE, NEXT, True, False, False),
        (ONE, np.nextafter(NEXT, np.float32(2)), True, True, False),
        (0.0, -0.0, True, False, False),
        (math.nan, math.nan, False, False, False),
        (math.nan, 1.0, True, True, True),
        (1.0, math.nan, True, True, True),
        (math.inf, math.inf, False, False, False),
        (math.inf, -math.inf, True, True, True),
        (np.finfo(np.float32).max, math.inf, True, False, True),
        (1.0, 1.25, True, True, True),
    ],
)
def test_what_each_tolerance_allows(a: Any, b: Any, bits: bool, ulp: bool, close: bool) -> None:
    found = [differs(t, a, b) for t in (BITWISE, Tolerance(ulp=1), Tolerance(rtol=1e-3, atol=1e-3))]
    assert found == [bits, ulp, close]


def test_the_relative_tolerance_is_of_the_first() -> None:
    assert not differs(Tolerance(rtol=0.5), 2.0, 1.0)
    assert differs(Tolerance(rtol=0.5), 1.0, 2.0)
    assert not differs(Tolerance(atol=0.5), 1.0, 1.5)
    assert differs(Tolerance(atol=0.5), 1.0, 1.500001)


def test_integers_and_booleans_are_equal_or_not() -> None:
    for tolerance in (BITWISE, Tolerance(ulp=9), Tolerance(atol=9)):
        assert differs(tolerance, 1, 2, np.int64)
        assert not differs(tolerance, 2, 2, np.int64)
        assert differs(tolerance, 0, 1, np.bool_)


def test_numbers_near_the_largest_do_not_overflow() -> None:
    huge = np.finfo(np.float64).max
    assert differs(Tolerance(rtol=0.5), huge, -huge, np.float64)
    assert not differs(Tolerance(rtol=0.5), huge, huge, np.float64)

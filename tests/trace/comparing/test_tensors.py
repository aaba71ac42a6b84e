"""By how much two arrays differ: figures, histogram, worst elements, in types for people and for JSON."""

import json
import math
from typing import Any

import numpy as np

from dgrr.base.ulp import FARTHEST
from dgrr.trace.comparing.policy import BITWISE, Tolerance
from dgrr.trace.comparing.tensors import TensorDifference, tensor_difference


def difference(a: Any, b: Any, dtype: type = np.float32, tolerance: Tolerance = BITWISE) -> TensorDifference:
    name = {np.float32: "f32", np.float64: "f64", np.int64: "i64"}[dtype]
    found = tensor_difference("w", "grad", name, np.array(a, dtype), np.array(b, dtype), tolerance)
    assert found is not None
    json.dumps(found.to_dict(), allow_nan=False)
    return found


def above(value: float, ulp: int, dtype: type = np.float32) -> Any:
    word = np.array(value, dtype).view(f"u{np.dtype(dtype).itemsize}")
    return (word + word.dtype.type(ulp)).view(dtype)


def test_equal_arrays() -> None:
    for array in (np.zeros(3), np.empty((0, 2)), np.array(np.nan), np.array([True])):
        assert tensor_difference("w", "grad", "f64", array, array.copy(), BITWISE) is None


def test_figures() -> None:
    found = difference([[1, 2], [4, 8]], [[1, 2.5], [4, 4]])
    assert (found.differing, found.max_abs, found.max_rel) == (2, 4.0, 0.5)
    assert found.figures() == "2 of 4 differ by up to 4, relatively 0.5"
    assert [(e.index, e.a, e.b) for e in found.worst] == [((1, 1), 8, 4), ((0, 1), 2, 2.5)]


def test_three_worst_elements_in_decimal_hexadecimal_and_bits() -> None:
    found = difference([1.0] * 5, [1.0, 1.5, above(1, 1), -1.0, 1.25])
    assert [e.index for e in found.worst] == [(3,), (1,), (4,)]
    assert found.lines(worst=3)[-2:] == [
        "  [4] a 1.0 (0x1.0000000000000p+0, bits 3f800000)",
        "      b 1.25 (0x1.4000000000000p+0, bits 3fa00000), 0.2 relative",
    ]
    assert len(found.lines(worst=0)) == 2


def test_histogram() -> None:
    ulps = [0, 1, 1, 2, 3, 4, 7, 8, 1 << 20]
    found = difference([1.0] * 9 + [0.0, math.nan], [above(1, n) for n in ulps] + [-0.0, 1.0])
    assert found.histogram == ((0, 1), (1, 2), (2, 2), (4, 2), (8, 1), (1 << 20, 1), (FARTHEST, 1))
    assert found.lines(worst=0)[1] == "  ULP zeros: 1   1: 2   2-3: 2   4-7: 2   8-15: 1   2^20+: 1   NaN: 1"
    assert found.differing == sum(count for _, count in found.histogram) == 10


def test_a_wide_histogram_has_wider_bins() -> None:
    found = difference([1.0] * 12, [above(1, 1 << n) for n in range(12)])
    assert found.lines(worst=0)[1] == "  ULP 1-3: 2   4-15: 2   16-63: 2   2^6+: 2   2^8+: 2   2^10+: 2"
    found = difference([1.0] * 23, [above(1, 1 << n) for n in range(23)])
    assert found.lines(worst=0)[1] == "  ULP 1-15: 4   2^4+: 4   2^8+: 4   2^12+: 4   2^16+: 4   2^20+: 3"


def test_far_apart_the_relative_difference_is_said() -> None:
    near, far = difference([1.0], [above(1, 1 << 20)]), difference([1.0], [above(1, (1 << 20) + 1)])
    assert near.worst[0].distance == "1048576 ULP"
    assert far.worst[0].distance == "0.11 relative"
    assert difference([-1.0], [1.0]).worst[0].distance == "2 relative"
    assert difference([math.inf], [1.0]).worst[0].distance.endswith(" ULP")  # there is no relative difference


def test_nan_infinity_and_zeros() -> None:
    found = difference([math.nan, math.inf, 0.0, 1.0], [1.0, 1.0, -0.0, 3.0])
    assert [e.index for e in found.worst] == [(0,), (1,), (3,)]  # what is not finite comes first
    assert (found.max_abs, found.worst[0].distance) == (2.0, "one is NaN")
    only = difference([math.nan], [1.0])
    assert (only.max_abs, only.max_rel, only.figures()) == (None, None, "1 of 1 differ, not finite in both")
    assert difference([0.0], [-0.0]).worst[0].distance == "zeros of another sign"
    assert difference([0.0], [-0.0]).figures() == "1 of 1 differ by up to 0, relatively 0"


def test_integers() -> None:
    found = difference([1, 2**62], [1, 2**62 + 3], np.int64)
    assert (found.differing, found.histogram, found.worst[0].distance) == (1, (), "apart by 3")


def test_a_scalar() -> None:
    found = tensor_difference("loss", "loss", "f64", np.array(1.0), np.array(above(1, 3, np.float64)), BITWISE)
    assert found is not None
    assert found.lines(worst=3) == [
        "loss, f64: differs by 6.66e-16, relatively 6.66e-16, 3 ULP",
        "  a 1.0 (0x1.0000000000000p+0, bits 3ff0000000000000)",
        "  b 1.0000000000000007 (0x1.0000000000003p+0, bits 3ff0000000000003)",
    ]


def test_beyond_a_tolerance_only() -> None:
    found = difference([1.0, 1.0], [above(1, 1), above(1, 9)], tolerance=Tolerance(ulp=4))
    assert (found.differing, found.worst[0].index) == (1, (1,))


def test_not_contiguous() -> None:
    a = np.arange(6.0).reshape(2, 3)
    found = tensor_difference("w", "grad", "f64", a.T, (a + np.eye(2, 3)).T, BITWISE)
    assert found is not None
    assert [e.index for e in found.worst] == [(0, 0), (1, 1)]


def test_what_is_not_recorded_or_in_one_alone() -> None:
    unread = TensorDifference("w", "after", (2,), "f32")
    assert unread.lines(worst=3) == ["'w' after the step, f32 (2,): its digests differ, its values are not recorded"]
    assert not unread.recorded
    assert TensorDifference("w", "grad", (2,), "f32", only_in="b").lines(worst=3) == [
        "gradient of 'w', f32 (2,): in b only"
    ]
    assert unread.to_dict()["differing"] is None

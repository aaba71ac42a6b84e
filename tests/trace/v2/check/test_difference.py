"""The first element at which two arrays differ."""

import numpy as np

from dgrr.trace.v2.check.difference import first_difference


def test_first_difference() -> None:
    one = np.float32(1)
    a = np.array([1, 0, 0, np.nan, np.nan, 1, -1], np.float32)
    b = np.array([np.nextafter(one, np.float32(2)), -0.0, 1e-45, np.nan, 1, np.inf, 1], np.float32)
    assert first_difference(a[:2], b[:2], 1) is None
    difference = first_difference(a[1:2], b[1:2])
    assert difference is not None
    assert difference.ulp == 0  # at tolerance 0 the bits count, and +0 is not -0
    assert first_difference(np.array([1, 2]), np.array([1, 3])) == ((1,), 2, 3, None)

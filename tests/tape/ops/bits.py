"""Bits of arrays, which tests of kernels hold to those of another text."""

from typing import Any

import numpy as np


def same(found: Any, expected: Any) -> bool:
    """Whether all bits are equal; all NaNs are one."""
    nan = np.isnan(expected)
    return bool((np.isnan(found) == nan).all()) and found[~nan].tobytes() == expected[~nan].tobytes()

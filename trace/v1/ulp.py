"""Distances between float64 values in units in the last place (ULP)."""

import numpy as np
from numpy.typing import NDArray

from .compiled import ordered


def ulp_distances(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return, element by element, how many float64 values apart `a` and `b` are.

    Counted on the monotone map of the bits: +0 and -0 are at distance 0, and the largest finite value and
    infinity at distance 1.

    >>> ulp_distances(np.array([1.0, -0.0]), np.array([np.nextafter(1.0, 2.0), 0.0]))
    array([1, 0], dtype=uint64)
    """
    u: NDArray[np.uint64] = ordered(a.view(np.uint64))
    v: NDArray[np.uint64] = ordered(b.view(np.uint64))
    return np.where(u > v, u - v, v - u)


def ulp_distance(a: float, b: float) -> int:
    """Return how many float64 values apart `a` and `b` are.

    >>> ulp_distance(-5e-324, 5e-324)
    2
    """
    return int(ulp_distances(np.array([a]), np.array([b]))[0])

"""What a page says of an array. For people to read: computed by numpy in float64, no part of the bit contract."""

import numpy as np

from ...base.arrays import Array
from ...tape.values.tables import statistics

FIGURES = ("norm", "min", "max", "zeros", "nonfinite")
"""2-norm, least and greatest element, share of zeros, number of infinite and NaN elements."""


def norm(array: Array) -> float:
    """The 2-norm; infinity where an element is not finite.

    >>> norm(np.array([3.0, 4.0])), norm(np.array([1e300, np.nan])), norm(np.array([1e300, 1e300])) > 1e300
    (5.0, inf, True)
    """
    with np.errstate(all="ignore"):
        square = float(np.sum(np.square(array, dtype=np.float64)))
    if 1e-280 < square < 1e280 or (square == 0.0 and not array.any()):
        return float(np.sqrt(square))
    found = statistics(array)
    return float("inf") if found["non-finite"] else float(found["norm"])


def figures(array: Array) -> tuple[float, ...]:
    """The numbers of `FIGURES`; the norm, the least and the greatest are those of the finite elements.

    >>> figures(np.array([0.0, -2.0, np.inf]))
    (2.0, -2.0, 0.0, 0.3333333333333333, 1)
    """
    found = statistics(array)
    ends = [float("nan") if found[end] is None else found[end] for end in ("min", "max")]
    share = found["zeros"] / array.size if array.size else 0.0
    return (found["norm"], *ends, share, found["non-finite"])


def distance(a: Array, b: Array) -> float:
    """The norm of the difference."""
    with np.errstate(all="ignore"):
        return norm(a.astype(np.float64) - b.astype(np.float64))


BINS = 40


def histogram(array: Array) -> tuple[float, float, Array] | None:
    """The least and the greatest finite element, and how many lie in each of 40 bins between; None if there is none.

    >>> low, high, counts = histogram(np.array([0.0, 1.0, 1.0, np.nan]))
    >>> low, high, counts[0].item(), counts[-1].item()
    (0.0, 1.0, 1, 2)
    """
    x = array.astype(np.float64).ravel()
    x = x[np.isfinite(x)]
    if not x.size:
        return None
    low, high = float(x.min()), float(x.max())
    if not np.isfinite(high - low) or (high - low) / BINS == 0.0:  # too wide or too narrow to be cut
        counts = np.zeros(BINS, np.uint32)
        counts[BINS // 2] = x.size
        return low, high, counts
    places = np.minimum(((x - low) / (high - low) * BINS).astype(np.int64), BINS - 1)
    return low, high, np.bincount(places, minlength=BINS).astype(np.uint32)

"""Magnitudes in 16 bits: their decimal logarithms in steps of 1/650, which keeps three digits of 100 decades."""

import numpy as np

from ...base.arrays import Array

ZERO, ABSENT, NON_FINITE = 0, 65534, 65535
LOWEST, PER_DECADE = -50.0, 650.0
"""Code 1 stands for 1e-50, and 650 codes for each factor of ten."""

_FIRST, _LAST = 1, 65001


def encode(magnitudes: Array) -> Array:
    """The codes of numbers of at least 0; NaN stands for what is absent, infinity for what is not finite.

    >>> codes = encode(np.array([0.0, 1.0, 10.0, np.nan, np.inf]))
    >>> codes
    array([    0, 32501, 33151, 65534, 65535], dtype=uint16)
    >>> decode(codes)
    array([ 0.,  1., 10., nan, inf])
    """
    found = np.zeros(magnitudes.shape, np.uint16)
    there = (magnitudes > 0) & np.isfinite(magnitudes)
    logarithms = np.log10(magnitudes[there].astype(np.float64))
    found[there] = np.clip(np.rint((logarithms - LOWEST) * PER_DECADE) + _FIRST, _FIRST, _LAST)
    found[np.isnan(magnitudes)] = ABSENT
    found[np.isinf(magnitudes)] = NON_FINITE
    return found


def decode(codes: Array) -> Array:
    """The numbers that codes stand for, to three digits."""
    found = np.power(10.0, (codes.astype(np.float64) - _FIRST) / PER_DECADE + LOWEST)
    found[codes == ZERO] = 0
    found[codes == ABSENT] = np.nan
    found[codes == NON_FINITE] = np.inf
    return found

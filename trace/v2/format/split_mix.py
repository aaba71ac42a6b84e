"""SplitMix64: words that look drawn at random, each made from its number alone."""

import numpy as np

from ....base.arrays import Array

_STEP, _FIRST, _SECOND = (np.uint64(word) for word in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_ONE, _SHIFTS = np.uint64(1), (np.uint64(30), np.uint64(27), np.uint64(31))


def split_mix(numbers: Array) -> Array:
    """The word of each number, modulo 2^64: `z = (n + 1) · 0x9E37…`, mixed as Steele, Lea and Flood do (OOPSLA 2014).

    >>> [hex(word) for word in split_mix(np.arange(2, dtype=np.uint64))]
    ['0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4']
    """
    z = (numbers + _ONE) * _STEP
    z = (z ^ z >> _SHIFTS[0]) * _FIRST
    z = (z ^ z >> _SHIFTS[1]) * _SECOND
    return z ^ z >> _SHIFTS[2]

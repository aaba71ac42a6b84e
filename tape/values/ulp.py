"""Floats as people compare them: decimal, hexadecimal, bits, and distances in units in the last place (ULP)."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SIGNED: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float32): np.dtype(np.int32),
    np.dtype(np.float64): np.dtype(np.int64),
}
"""The integers that hold the bits of each float type."""

FARTHEST = 2**64 - 1
"""The distance of a NaN from everything else."""


def exact(value: np.generic) -> str:
    """A number in decimal, and a float also as hexadecimal float and as bits.

    >>> exact(np.float32(0.1))
    '0.1 (0x1.99999a0000000p-4, bits 3dcccccd)'
    """
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return str(value)
    bits = array.astype(array.dtype.newbyteorder(">")).tobytes().hex()
    return f"{value!s} ({float(array).hex()}, bits {bits})"


def ulp_distance(a: np.floating[Any], b: np.floating[Any]) -> int:
    """How many values of their type two floats of one type are apart.

    Counted on the monotone map of the bits: +0 and -0 are at distance 0, the largest finite value and infinity
    at distance 1; a NaN is at distance 0 from a NaN and at 2**64 - 1 from everything else.

    >>> ulp_distance(np.float64(-5e-324), np.float64(5e-324))
    2
    """
    if np.isnan(a) or np.isnan(b):
        return 0 if np.isnan(a) and np.isnan(b) else FARTHEST
    return abs(_ordered(a) - _ordered(b))


def _ordered(a: np.floating[Any]) -> int:
    bits = int(np.asarray(a).view(SIGNED[a.dtype]))
    return bits if bits >= 0 else -(1 << (8 * a.dtype.itemsize - 1)) - bits


def same_bits(a: Array, b: Array) -> npt.NDArray[np.bool_]:
    """Element by element, whether two arrays of one type hold the same value; every NaN is the same one."""
    if a.dtype not in SIGNED:
        return np.equal(a, b)
    return np.equal(_bits(a), _bits(b)) | np.isnan(a) & np.isnan(b)


def _bits(a: Array) -> Array:
    return np.ascontiguousarray(a).view(SIGNED[a.dtype]).reshape(a.shape)

"""Floats as people compare them: decimal, hexadecimal, bits, and distances in units in the last place (ULP)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import Array, is_float

Word = np.uint64

FARTHEST = 2**64 - 1
"""The distance of a NaN from everything else."""

_SIGN = Word(1 << 63)


def ordered(bits: Any) -> Any:
    """Map the bits of float64 values to words that keep their order; +0 and -0 coincide.

    Takes and gives arrays of uint64, or words in compiled code. The ULP distance of two values is the
    difference of their words.
    """
    negative = bits >> Word(63)
    return _SIGN + ((bits & ~_SIGN) ^ (Word(0) - negative)) + negative


def ulp_distances(a: Array, b: Array) -> npt.NDArray[np.uint64]:
    """Element by element, how many values of their type two arrays of one float type and shape are apart.

    Counted on the monotone map of the bits: +0 and -0 are at distance 0, the largest finite value and infinity
    at distance 1; a NaN is at distance 0 from a NaN and at 2**64 - 1 from everything else.

    >>> ulp_distances(np.array([1.0, -0.0]), np.array([np.nextafter(1.0, 2.0), 0.0]))
    array([1, 0], dtype=uint64)
    """
    unused = Word(64 - 8 * a.dtype.itemsize)  # shifted up, the words of a shorter type keep their order too
    x, y = (_bits(v).astype(Word) << unused for v in (a, b))
    if has_sign(a.dtype):
        x, y = ordered(x), ordered(y)
    distances = ((np.maximum(x, y) - np.minimum(x, y)) >> unused).reshape(a.shape)
    nans = np.isnan(a), np.isnan(b)
    return np.where(nans[0] | nans[1], np.where(nans[0] & nans[1], Word(0), Word(FARTHEST)), distances)


def has_sign(dtype: "np.dtype[Any]") -> bool:
    """Whether a type of floats has negative values: all but the powers of two that scale blocks.

    >>> has_sign(np.dtype(np.float16))
    True
    """
    return dtype.name != "float8_e8m0fnu"


def ulp_distance(a: float | np.floating[Any], b: float | np.floating[Any]) -> int:
    """The distance of two floats of one type, likewise.

    >>> ulp_distance(np.float64(-5e-324), np.float64(5e-324))
    2
    """
    return int(ulp_distances(np.asarray(a), np.asarray(b)))


def exact(value: Any) -> str:
    """A number in decimal, and a float also as hexadecimal float and as bits.

    >>> exact(np.float32(0.1))
    '0.1 (0x1.99999a0000000p-4, bits 3dcccccd)'
    """
    array = np.asarray(value)
    if not is_float(array.dtype):
        return str(value)
    bits = _bits(array).astype(f">u{array.itemsize}").tobytes().hex()
    return f"{value!s} ({float(array).hex()}, bits {bits})"


def same_bits(a: Array, b: Array) -> npt.NDArray[np.bool_]:
    """Element by element, whether two arrays of one type hold the same value; every NaN is the same one."""
    if not is_float(a.dtype):
        return np.equal(a, b)
    return np.equal(_bits(a), _bits(b)).reshape(a.shape) | np.isnan(a) & np.isnan(b)


def _bits(a: Array) -> Array:
    """The bits of floats as unsigned integers in C order, with an axis at least."""
    return np.ascontiguousarray(a).view(f"u{a.dtype.itemsize}")

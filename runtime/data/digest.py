"""What a data set holds, as one short text: to see whether several processes have the same."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from ...base.arrays import Array

WHOLE = 1 << 26
"""Bytes up to which all of an array counts; of a larger one, which may be a file, `SAMPLES` samples."""

SAMPLES = 64


def arrays_digest(arrays: Sequence[Array], others: Sequence[Any] = ()) -> str:
    """16 hex digits over arrays, each with its dtype and shape, and over what else decides, by its ``repr``.

    >>> arrays_digest([np.arange(3)]) == arrays_digest([np.arange(3)]) != arrays_digest([np.arange(3)], ["shuffled"])
    True
    """
    digest = sha256(repr(list(others)).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{list(array.shape)}".encode())
        digest.update(np.ascontiguousarray(_counting(array)).tobytes())
    return digest.hexdigest()[:16]


def _counting(array: Array) -> Array:
    """The array, or samples of it from the first to the last."""
    if array.nbytes <= WHOLE:
        return array
    return array[np.linspace(0, len(array) - 1, SAMPLES).astype(np.int64)]

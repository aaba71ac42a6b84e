"""One number for a training state: SHA-256 over parameters, optimizer state and the model's state.

The digest is taken over this byte string, all numbers little-endian::

    "dgrr state 1\\n"                                    13 ASCII bytes: what this is, and its version
    u64 count, then `count` arrays                      the parameters, in order
    u64 count, then `count` arrays                      the optimizer state, in order
    u64 count, then `count` arrays                      the model's state, in order; nothing if it has none

    array:  u64 length, name in UTF-8
            u64 length, dtype name in ASCII             "float32", "float64", "int64", "bool", …
            u64 rank, then rank times u64 size
            u64 length, elements in C order             each little-endian; bool: one byte, 0 or 1

A NaN is written as 7fc00000 in float32 and as 7ff8000000000000 in float64, as its sign and payload differ
between machines. Every part is preceded by its length, so two different states have different byte strings.
"""

from hashlib import sha256
from struct import pack
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.arrays import Arrays
from ...tape.errors import DTypeError

TAG = b"dgrr state 1\n"

NANS = {
    np.dtype(np.float32): np.array(0x7FC00000, np.uint32).view(np.float32),
    np.dtype(np.float64): np.array(0x7FF8000000000000, np.uint64).view(np.float64),
}
"""The NaN as which every NaN of a dtype is written."""


def state_digest(params: Arrays, state: Arrays, model_state: Arrays | None = None) -> str:
    """SHA-256, as 64 hex digits, over parameters, optimizer state and the model's state in their order.

    Args:
        params: arrays by name: float32, float64, bool or integers; any strides and byte order.
        state: likewise.
        model_state: likewise.

    Raises:
        DTypeError: an array of another dtype.

    >>> import numpy as np
    >>> state_digest({"w": np.zeros(2, np.float32)}, {"step": np.array(0)})[:16]
    'bc9eebb12e1f157c'
    """
    digest = sha256(TAG)
    for arrays in (params, state, *([model_state] if model_state else [])):
        digest.update(pack("<Q", len(arrays)))
        for name, array in arrays.items():
            dtype, elements = _canonical(name, array)
            for text in (name.encode(), dtype.encode()):
                digest.update(pack("<Q", len(text)) + text)
            digest.update(pack(f"<Q{array.ndim}Q", array.ndim, *array.shape))
            digest.update(pack("<Q", elements.nbytes))
            digest.update(elements.data)
    return digest.hexdigest()


def _canonical(name: str, array: npt.NDArray[Any]) -> tuple[str, npt.NDArray[Any]]:
    """The dtype's name, and the elements as one row: C order, little-endian, with one kind of NaN."""
    native = array.dtype.newbyteorder("=")
    if native not in NANS and native.kind not in "biu":
        expected = "expected float32, float64, bool or integers"
        raise DTypeError(f"state_digest: {name!r}: {expected}, got {array.dtype}; use astype")
    row = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1)
    if native in NANS and (missing := np.isnan(row)).any():
        row = row.copy()
        row[missing] = NANS[native]
    return native.name, row.view(np.uint8)

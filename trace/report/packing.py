"""Arrays inside a page: little-endian bytes in base64, each in an element of its own, decoded when it is drawn."""

from base64 import b64encode
from typing import Any

import numpy as np

from ...base.arrays import Array

_KINDS = {"float64": "f64", "float32": "f32", "uint32": "u32", "uint16": "u16", "uint8": "u8"}


class Pack:
    """The arrays of a page; `texts` are their bytes in base64, by the numbers that references name."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, array: Array) -> dict[str, Any]:
        """Take an array, and return the reference that the page's data has in its place.

        >>> pack = Pack()
        >>> pack.add(np.array([1, 2], np.uint16)), pack.texts
        ({'kind': 'u16', 'at': 0}, ['AQACAA=='])
        """
        self.texts.append(b64encode(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()).decode())
        return {"kind": _KINDS[array.dtype.name], "at": len(self.texts) - 1}

    def file(self, data: bytes) -> int:
        """Take a file as it is, and return the number of its element."""
        self.texts.append(b64encode(data).decode())
        return len(self.texts) - 1

    def series(self, values: Array) -> dict[str, Any]:
        """The same of one number per step; a number that never changes stands for all of them.

        >>> Pack().series(np.full(1000, 0.5))
        {'constant': 0.5}
        """
        first = float(values[0]) if values.size else 0.0
        if np.isfinite(first) and bool(np.all(values == first)):
            return {"constant": first}
        return self.add(values.astype(np.float64))

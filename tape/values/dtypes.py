"""Element types: the marker classes that annotations use, and the numpy dtype of each."""

from typing import Any, ClassVar

import numpy as np

from ..errors import DTypeError


class DType:
    """An element type; ``D`` in ``Var[D, *S]``."""

    dtype: ClassVar[np.dtype[Any]]


class Numeric(DType):
    """A type of numbers: floats and integers."""


class Float(Numeric):
    """A type that can carry a gradient."""


class f32(Float):
    """IEEE-754 binary32."""

    dtype = np.dtype(np.float32)


class f64(Float):
    """IEEE-754 binary64."""

    dtype = np.dtype(np.float64)


class i64(Numeric):
    """64-bit integers: indices, labels and counts."""

    dtype = np.dtype(np.int64)


class boolean(DType):
    """Masks."""

    dtype = np.dtype(np.bool_)


DTYPES: dict[np.dtype[Any], type[DType]] = {t.dtype: t for t in (f32, f64, i64, boolean)}
"""The four element types by numpy dtype."""

FLOATS = (f32.dtype, f64.dtype)
"""The dtypes that can carry a gradient."""


def element_dtype(where: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which the engine holds arrays of ``dtype``: itself, or int64 for other integers.

    Raises DTypeError for anything else (float16, complex, object, …).

    >>> element_dtype("leaf", np.dtype(np.uint8))
    dtype('int64')
    """
    if dtype in DTYPES:
        return dtype
    if dtype.kind in "iu":
        return i64.dtype
    native = dtype.newbyteorder("=")
    if native in DTYPES:
        return native
    given = "what is no number" if dtype.kind == "O" else f"{dtype}; convert with .astype first"
    raise DTypeError(f"{where}: expected float32, float64, an integer type or bool, got {given}")

"""Checks of the arrays that optimizers and clipping are given; every error names the command and the array.

``where`` is a template for `str.format` and ``names`` are its values: only an error puts the text together.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from typing_extensions import TypeIs

from ...base.arrays import Array, Arrays
from ...tape.errors import DomainError, DTypeError, ShapeError
from ...tape.numerics.engine.launch import Words

DType: TypeAlias = np.dtype[Any]

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


@cache
def prepared_words(*values: int) -> Words:
    """The words of a kernel call; made once for equal values and kept."""
    return Words(*values)


def is_array(value: object) -> TypeIs[Array]:
    """Whether ``value`` is a numpy array."""
    return isinstance(value, np.ndarray)


def _kind_of(value: Any) -> str:
    """What errors call something that is no array."""
    kind = type(value).__name__
    return f"a numpy scalar of {kind}" if isinstance(value, np.generic) else kind


def check_float(array: object, where: str, *names: str) -> Array:
    """``array`` if it is a numpy array of float32 or float64, else DTypeError."""
    if not is_array(array):
        expected = "expected a numpy array of float32 or float64"
        raise DTypeError(f"{where.format(*names)}: {expected}, got {_kind_of(array)}; use np.asarray")
    if array.dtype not in FLOATS:
        given = str(array.dtype)
        raise DTypeError(f"{where.format(*names)}: expected float32 or float64, got {given}; use astype")
    return array


def check_like(array: object, shape: tuple[int, ...], dtype: DType, where: str, *names: str) -> Array:
    """``array`` if it is a numpy array of this shape and dtype, else ShapeError or DTypeError."""
    if not is_array(array):
        expected = f"expected a numpy array of {dtype}"
        raise DTypeError(f"{where.format(*names)}: {expected}, got {_kind_of(array)}; use np.asarray")
    if array.shape != shape:
        raise ShapeError(f"{where.format(*names)}: expected shape {shape}, got {array.shape}")
    if array.dtype != dtype:
        raise DTypeError(f"{where.format(*names)}: expected {dtype}, got {array.dtype}; use astype")
    return array


def check_in_place(array: Array, where: str, *names: str) -> Array:
    """``array`` if a kernel can update it in place, else DomainError."""
    if not array.flags.carray:
        given = "a strided or unaligned one" if array.flags.writeable else "a read-only one"
        expected = "expected a C-contiguous, writeable array, as it is updated in place"
        raise DomainError(f"{where.format(*names)}: {expected}, got {given}; pass array.copy()")
    return array


def check_names(given: Iterable[str], known: Arrays, where: str, *names: str) -> None:
    """Raise DomainError if a name is not one of ``known``."""
    for name in given:
        if name not in known:
            expected = ", ".join(map(repr, known)) or "none: there are no parameters"
            raise DomainError(f"{where.format(*names)}: expected the names of parameters ({expected}), got {name!r}")


def contiguous(array: Array) -> Array:
    """``array``, or a copy of it where a kernel could not read its memory as one row."""
    return array if array.flags.c_contiguous and array.flags.aligned else array.copy()

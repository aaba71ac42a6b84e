"""Where two arrays differ, and by how much: for people, and for tolerances in ULP."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..format.digest import Array, canonical

_SIGNED: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float32): np.dtype(np.int32),
    np.dtype(np.float64): np.dtype(np.int64),
}


class Difference(NamedTuple):
    """The first element at which two arrays differ: its index, both values, their distance in ULP."""

    element: tuple[int, ...]
    recorded: Any
    found: Any
    ulp: int | None

    def __str__(self) -> str:
        place = ", ".join(map(str, self.element))
        distance = "" if self.ulp is None else f", {self.ulp} ULP apart"
        return f"element [{place}]: recorded {show(self.recorded)}, found {show(self.found)}{distance}"


def show(value: Any) -> str:
    """A numpy scalar in decimal, and a float also as hexadecimal float and as bits.

    >>> show(np.float32(0.1))
    '0.1 (0x1.99999a0000000p-4, bits 3dcccccd)'
    """
    array: Array = np.asarray(value)
    if array.dtype.kind != "f":
        return str(value)
    bits = array.astype(array.dtype.newbyteorder(">")).tobytes().hex()
    return f"{value!s} ({float(array).hex()}, bits {bits})"


def ulp_distances(a: Array, b: Array) -> npt.NDArray[np.uint64]:
    """Element by element, how many values of their float dtype `a` and `b` are apart.

    Counted on the monotone map of the bits: +0 and -0 are at distance 0. A NaN is at distance 0 from a NaN,
    and at the largest from everything else.
    """
    distance = np.abs(_ordered(a) - _ordered(b)) if a.dtype.itemsize == 4 else _distance64(a, b)
    unlike = np.isnan(a) != np.isnan(b)
    return np.where(unlike, np.uint64(2**64 - 1), distance.astype(np.uint64))


def _ordered(a: Array) -> npt.NDArray[np.int64]:
    bits = canonical(a).view(_SIGNED[a.dtype]).astype(np.int64)
    lowest = np.int64(-(1 << (8 * a.dtype.itemsize - 1)))
    return np.where(bits < 0, lowest - bits, bits)


def _distance64(a: Array, b: Array) -> npt.NDArray[np.uint64]:
    x, y = _ordered(a), _ordered(b)
    larger, smaller = np.maximum(x, y).view(np.uint64), np.minimum(x, y).view(np.uint64)
    return larger - smaller


def first_difference(recorded: Array, found: Array, ulp_tol: int = 0) -> Difference | None:
    """The first element, in C order, that differs by more than `ulp_tol`; at 0 the bits must be equal."""
    if recorded.dtype.kind == "f":
        distances = ulp_distances(recorded, found)
        differs = distances > ulp_tol if ulp_tol else _bits(recorded) != _bits(found)
    else:
        distances, differs = None, recorded != found
    if not differs.any():
        return None
    element = tuple(int(i) for i in np.unravel_index(int(np.argmax(differs)), recorded.shape))
    ulp = None if distances is None else int(distances[element])
    return Difference(element, recorded[element], found[element], ulp)


def _bits(array: Array) -> Array:
    return canonical(array).view(_SIGNED[array.dtype])

"""Layouts: where the elements of a value lie in its storage."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...base.arrays import Array
from ...tape.numerics.sizes import Sizes

LAYOUTS_KEPT = 4096
"""Layouts that are kept once they are known."""


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """Sizes and strides in bytes, and the offset of the first element in the storage."""

    shape: Sizes
    strides: Sizes
    offset: int
    dtype: np.dtype[Any]
    nbytes: int = field(init=False, repr=False, compare=False)
    """Bytes of its elements, each counted once for every index."""
    is_dense: bool = field(init=False, repr=False, compare=False)
    """Whether its elements lie in row-major order without gaps; an axis of one element may have any stride."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nbytes", prod(self.shape) * self.dtype.itemsize)
        object.__setattr__(self, "is_dense", _is_dense(self.shape, self.strides, self.dtype.itemsize))

    @classmethod
    @lru_cache(LAYOUTS_KEPT)
    def dense(cls, shape: Sizes, dtype: np.dtype[Any]) -> "ArrayLayout":
        """Row-major order without gaps."""
        strides, stride = list[int](), dtype.itemsize
        for size in reversed(shape):
            strides.append(stride)
            stride *= size
        return cls(shape, tuple(reversed(strides)), 0, dtype)

    @property
    def touched(self) -> int:
        """Bytes of storage that its elements lie in, repeated ones counted once."""
        sizes = [n for n, stride in zip(self.shape, self.strides, strict=True) if stride]
        return prod(sizes) * self.dtype.itemsize if self.nbytes else 0

    def further(self, nbytes: int) -> "ArrayLayout":
        """The same so many bytes further on."""
        return ArrayLayout(self.shape, self.strides, self.offset + nbytes, self.dtype)

    def through(self, view: Callable[[Array], Array]) -> "ArrayLayout | None":
        """The layout that a view function gives; None where it has to copy.

        The function is asked with an array of this layout over memory that is never touched.
        """
        return _through(self, view)

    def array(self, memory: Array) -> Array:
        """The array of this layout over storage given as bytes."""
        return np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)


@lru_cache(LAYOUTS_KEPT)
def _is_dense(shape: Sizes, strides: Sizes, itemsize: int) -> bool:
    expected = itemsize
    if 0 in shape:
        return True
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


@lru_cache(LAYOUTS_KEPT)
def _through(layout: ArrayLayout, view: Callable[[Array], Array]) -> ArrayLayout | None:
    if 0 in layout.shape:
        return ArrayLayout.dense(view(np.empty(layout.shape, layout.dtype)).shape, layout.dtype)
    low = sum(min(0, (n - 1) * s) for n, s in zip(layout.shape, layout.strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(layout.shape, layout.strides, strict=True))
    memory = np.empty((high - low) // layout.dtype.itemsize + 1, layout.dtype)
    before = as_strided(memory[-low // layout.dtype.itemsize :], layout.shape, layout.strides)
    after = view(before)
    if not after.size:
        return ArrayLayout.dense(after.shape, layout.dtype)
    if not np.may_share_memory(memory, after):
        return None
    moved = after.__array_interface__["data"][0] - before.__array_interface__["data"][0]
    return ArrayLayout(after.shape, after.strides, layout.offset + moved, layout.dtype)

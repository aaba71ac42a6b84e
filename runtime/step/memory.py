"""Memory for what steps keep: blocks of bytes that begin at cache lines."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ...arrays import Array

ALIGNMENT = 64
"""Bytes to which every block is aligned: one cache line, and the widest vector."""


def aligned(nbytes: int) -> int:
    """``nbytes`` rounded up to whole lines; at least one."""
    return max(1, -(-nbytes // ALIGNMENT)) * ALIGNMENT


def line_aligned(nbytes: int) -> Array:
    """Fresh bytes that begin at a cache line; their contents are junk."""
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    return memory[-memory.ctypes.data % ALIGNMENT :][:nbytes]


def packed(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Copies of arrays in one block, side by side in their order, each beginning at a cache line."""
    return in_one_block(arrays)[1]


def in_one_block(arrays: Mapping[str, Array]) -> tuple[Array, dict[str, Array]]:
    """The bytes of such a block, and the copies in it."""
    block = line_aligned(sum(aligned(a.nbytes) for a in arrays.values()))
    block[:] = 0
    copies, offset = dict[str, Array](), 0
    for name, array in arrays.items():
        copies[name] = block[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
        copies[name][...] = array
        offset += aligned(array.nbytes)
    return block, copies


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A fresh array that begins at a cache line; its contents are junk."""
    return line_aligned(prod(shape) * dtype.itemsize).view(dtype).reshape(shape)

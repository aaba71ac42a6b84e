"""Memory for what steps keep: blocks of bytes that begin at cache lines."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from ...base.arrays import Array
from ...screen.named_arrays import NamedArrays

ALIGNMENT = 64
"""Bytes to which every block is aligned: one cache line, and the widest vector."""


def aligned(nbytes: int) -> int:
    """``nbytes`` rounded up to whole lines; at least one."""
    return max(1, -(-nbytes // ALIGNMENT)) * ALIGNMENT


def line_aligned(nbytes: int) -> Array:
    """Fresh bytes that begin at a cache line; their contents are junk."""
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    return memory[-memory.ctypes.data % ALIGNMENT :][:nbytes]


def owned_block(array: Array) -> Array:
    """All bytes of the memory in which an array is a view, or the array's own."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.reshape(-1).view(np.uint8)


def packed(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Copies of arrays in one block, side by side in their order, each beginning at a cache line."""
    return NamedArrays(in_one_block(arrays)[1])


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


def side_by_side(
    wanted: Sequence[tuple[tuple[int, ...], np.dtype[Any]]], block: Callable[[int], Array] = line_aligned
) -> list[Array]:
    """Fresh arrays of these shapes and dtypes in one block, each beginning at a cache line; their contents are junk."""
    sizes = [aligned(prod(shape) * dtype.itemsize) for shape, dtype in wanted]
    memory, made = block(sum(sizes)), list[Array]()
    for (shape, dtype), offset in zip(wanted, accumulate([0, *sizes]), strict=False):
        made.append(memory[offset:][: prod(shape) * dtype.itemsize].view(dtype).reshape(shape))
    return made

"""Copying a strided array to row-major order: bits move, none are computed.

`copy_words` reduces an array to as few axes as its strides allow and chooses two of them for the inner loops:
``along``, the last one, whose elements lie side by side in the output, and ``across``. Where the source's
elements lie side by side along ``across``, it is transposed in square tiles, in registers.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from collections.abc import Sequence

import numpy as np
from numba import njit

from ..engine.intrinsics import pointer, retyped, stack, word
from ..engine.kernel import kernel, share, vector
from ..engine.launch import Words
from ..simd.lanes import filled, inlined
from ..simd.strided import advanced, load_at, load_bundle_at, load_part_at, tile, transpose_tile
from ..simd.vectors import LANES, bundle, bundle_of, rolled, store, store_part

INT64 = np.int64(0)
MAX_RANK = 64
"""The most axes that numpy allows."""

# Positions of the words: the axis that shares split, the rank, then for each axis its size, its stride in the
# source in bytes, and its stride in the output in elements. The last two axes are `across` and `along`.
SPLIT, RANK, AXES = range(3)

CopiedAxis = tuple[int, int, int]
"""Size, stride in the source in bytes, stride in the output in elements."""


def copy_words(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Words:
    """The words of `copy` for an array of these sizes and strides in bytes.

    >>> copy_words((2, 3, 4), (48, 16, 4), 4).values.tolist()  # contiguous: one axis
    [1, 2, 1, 0, 0, 24, 4, 1]
    """
    axes = _output_strides(joined_axes(shape, strides))
    axes = [(1, 0, 0)] * (2 - len(axes)) + axes
    across = _across(axes, itemsize)
    axes = [*(a for i, a in enumerate(axes[:-1]) if i != across), axes[across], axes[-1]]
    split = max(range(len(axes)), key=lambda i: axes[i][0])
    return Words(split, len(axes), *(number for axis in axes for number in axis))


def joined_axes(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Sizes and strides without axes of one element, neighbours joined where one continues the other."""
    joined: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if joined and joined[-1][1] == size * stride:
            joined[-1] = (joined[-1][0] * size, stride)
        else:
            joined.append((size, stride))
    return joined


def _output_strides(axes: Sequence[tuple[int, int]]) -> list[CopiedAxis]:
    """Each axis with its stride in row-major order."""
    placed: list[CopiedAxis] = []
    step = 1
    for size, stride in reversed(axes):
        placed.insert(0, (size, stride, step))
        step *= size
    return placed


def _across(axes: Sequence[CopiedAxis], itemsize: int) -> int:
    """The axis walked beside the last: the one before it, or where the last strides, that of the least stride."""
    nearest = min(range(len(axes) - 1), key=lambda i: abs(axes[i][1]) or np.inf)
    strides = abs(axes[-1][1]) > max(itemsize, abs(axes[nearest][1]))
    return nearest if strides else len(axes) - 2


@njit(inline="always")
def _size(ints, axis):
    return word(ints, AXES + 3 * axis)


@njit(inline="always")
def _source_stride(ints, axis):
    return word(ints, AXES + 3 * axis + 1)


@njit(inline="always")
def _output_stride(ints, axis):
    return word(ints, AXES + 3 * axis + 2)


@inlined
def _copy_side_by_side(out, source):
    whole = out.size - out.size % bundle(out)
    for j in range(0, whole, bundle(out)):
        store(out, j, load_bundle_at(source, j * out.itemsize))
    for j in range(whole, out.size, LANES):
        rolled()
        store_part(out, j, out.size - j, load_part_at(source, j * out.itemsize, out.size - j))


@inlined
def _fill(out, value):
    whole = out.size - out.size % bundle(out)
    for j in range(0, whole, bundle(out)):
        store(out, j, bundle_of(out, value))
    for j in range(whole, out.size, LANES):
        rolled()
        store_part(out, j, out.size - j, filled(value, LANES))


@inlined
def _copy_row(out, source, stride):
    """One row: side by side, one element repeated, or strided."""
    if stride == out.itemsize:
        _copy_side_by_side(out, source)
    elif stride == 0:
        _fill(out, load_at(source, 0))
    else:
        for j in range(out.size):
            out[j] = load_at(source, j * stride)


@inlined
def _transpose(out, pitch, source, stride, m, n):
    """The rows of a block whose columns lie side by side in the source, tile by tile."""
    for i in range(0, m, tile(out)):
        for j in range(0, n, tile(out)):
            rolled()
            corner = advanced(source, i * out.itemsize + j * stride)
            transpose_tile(out, i * pitch + j, pitch, corner, stride, m - i, n - j)


@inlined
def _copy_block(table, ints, place, source, m, n):
    """The rows along one pair of inner axes of ``m`` and ``n`` elements."""
    across = word(ints, RANK) - 2
    pitch, row, stride = _output_stride(ints, across), _source_stride(ints, across), _source_stride(ints, across + 1)
    out = vector(table, 0, place, (m - 1) * pitch + n)
    if row == out.itemsize and abs(stride) > row and n > 1:
        _transpose(out, pitch, source, stride, m, n)
        return
    for i in range(m):
        _copy_row(vector(table, 0, place + i * pitch, n), advanced(source, i * row), stride)


@kernel
def copy(table, ints, part, parts):
    """``out = x`` in row-major order for an array of any strides; the words are made by `copy_words`."""
    split, outer = word(ints, SPLIT), word(ints, RANK) - 2
    start, count = share(_size(ints, split), part, parts)
    place = start * _output_stride(ints, split)
    source = advanced(pointer(table, 1, 0), start * _source_stride(ints, split))
    sizes, index = stack(retyped(table, INT64), MAX_RANK), stack(retyped(table, INT64), MAX_RANK)
    blocks = 1
    for axis in range(outer + 2):
        sizes[axis], index[axis] = count if axis == split else _size(ints, axis), 0
        blocks *= sizes[axis] if axis < outer else 1
    for _ in range(blocks):
        _copy_block(table, ints, place, source, sizes[outer], sizes[outer + 1])
        for axis in range(outer - 1, -1, -1):  # the next block, as an odometer turns
            index[axis] += 1
            place += _output_stride(ints, axis)
            source = advanced(source, _source_stride(ints, axis))
            if index[axis] < sizes[axis]:
                break
            index[axis] = 0
            place -= sizes[axis] * _output_stride(ints, axis)
            source = advanced(source, -sizes[axis] * _source_stride(ints, axis))
    return 0

"""Chains: several elementwise kernels run block by block, so that what lies between them never leaves the cache.

A chain calls the very kernels that it joins, each for the share of elements that one block is; values that only
the chain reads live in a block of scratch memory of their own.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import njit

from ..sizes import Sizes
from .intrinsics import entry, invoke, put_word, stack_words, word
from .kernel import Kernel, kernel, share
from .launch import Words

BLOCK = 2048
"""The most elements of a block."""
MAX_OPERANDS = 8
"""The most pointers of a kernel that a chain calls."""
LOCAL = BLOCK * 8
"""Bytes of a local value's block, whatever its elements."""

# Positions of the words: elements, blocks, pointers outside, local values, kernels; then for each kernel its
# address, the address of its words, the number of its operands, and for each operand where it lies - the
# position of a pointer outside, or -1 - the number of a local value - and the bytes of an element.
SIZE, BLOCKS, OUTSIDE, LOCALS, CALLS, FIRST = range(6)
CALL = 3 + 2 * MAX_OPERANDS


@njit(inline="always")
def _run_block(table, call, first, block, blocks, scratch):
    """One kernel on one block; the pointer to a local value is such that its block begins the value's memory."""
    operands = stack_words(MAX_OPERANDS)
    for k in range(word(call, 2)):
        place, itemsize = word(call, 3 + 2 * k), word(call, 4 + 2 * k)
        if place >= 0:
            put_word(operands, k, entry(table, place))
        else:
            put_word(operands, k, scratch + (-1 - place) * LOCAL - first * itemsize)
    invoke(word(call, 0), operands, word(call, 1), block, blocks)


@kernel
def chain(table, ints, part, parts):
    """Run the kernels of a chain on the blocks of one share. Arrays: those outside, then scratch."""
    size, blocks, calls = word(ints, SIZE), word(ints, BLOCKS), word(ints, CALLS)
    scratch = entry(table, word(ints, OUTSIDE)) + part * word(ints, LOCALS) * LOCAL
    start, count = share(blocks, part, parts)
    for block in range(start, start + count):
        first, _ = share(size, block, blocks)
        for c in range(calls):
            _run_block(table, ints + 8 * (FIRST + c * CALL), first, block, blocks, scratch)
    return 0


Spread = tuple[int, tuple[tuple[int, int], ...]]
"""Where the elements of an operand lie: bytes before the first, then size and stride in bytes of each axis."""


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """One kernel of a chain: its operands, output first, as positions of pointers outside or -1 - a local value.

    ``spreads``, of each operand or empty, are for a GPU: None where elements lie side by side, as on a CPU all do.
    """

    kernel: Kernel
    element: np.dtype[Any]
    words: Words
    operands: tuple[int, ...]
    itemsizes: tuple[int, ...]
    spreads: tuple[Spread | None, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """The links of a chain over ``size`` elements, with ``outside`` arrays and ``local`` values."""

    size: int
    outside: int
    local: int
    links: Sequence[Link]

    def with_kernels(self, kernels: Mapping[Kernel, Kernel]) -> "Chain":
        """The chain with other kernels in the place of some."""
        return replace(self, links=[replace(k, kernel=kernels.get(k.kernel, k.kernel)) for k in self.links])

    def words(self, strides: tuple[Sizes, ...]) -> Words:
        """The words; compiles the kernels or loads them from disk."""
        packed = [self.size, -(-self.size // BLOCK), self.outside, self.local, len(self.links)]
        for link in self.links:
            places = [n for pair in zip(link.operands, link.itemsizes, strict=True) for n in pair]
            padding = [0] * (CALL - 3 - len(places))
            packed += [link.kernel.address(link.element), link.words.address, len(link.operands), *places, *padding]
        return Words(*packed)

    def scratch(self, strides: tuple[Sizes, ...], parts: int) -> int:
        """Bytes for the local values of every share; at least one, as the table has an entry for them."""
        return max(1, self.local * LOCAL * parts)

"""Digests of the same places again and again, as part of a program."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....base.arrays import Array
from ..engine.kernel import Kernel
from ..engine.launch import MAX_PARTS, PARALLEL_WORK, Words
from ..engine.threads import THREADS
from ..prepared.places import BytePlace, address_of
from ..prepared.prepared_calls import Row, row
from .constants import BLOCK, STRIPE
from .kernels import (
    AGAIN,
    BLOCKS,
    BROKEN,
    DATA,
    FIELD,
    HEAD,
    HEAD_BYTES,
    ITEM,
    NBYTES,
    ONE,
    OUT,
    SUMS,
    xxh3_digests,
    xxh3_sums,
)
from .message import MOST_HEAD

LONG = 1 << 16
"""Bytes from which several threads share an array."""

_EXPONENT = {
    np.dtype(np.float32): (0x7F8000007F800000, 0x0080000000800000),
    np.dtype(np.float64): (0x7FF0000000000000, 0x0010000000000000),
}
"""The exponents of the numbers in a word, and the lowest bit of each."""


class Message(NamedTuple):
    """What is digested: a head, then the elements of an array.

    Args:
        head: at most 960 bytes; a whole number of words where ``numbers`` is given.
        nbytes: of the elements.
        out: 16 bytes that the digest goes to.
        data: where the elements lie.
        again: 16 bytes that it goes to as well.
        numbers: the dtype of the elements, if an infinity or NaN among them is to be found; other dtypes have none.
    """

    head: Array
    nbytes: int
    out: Array
    data: BytePlace
    again: Array | None = None
    numbers: np.dtype[Any] | None = None


class Digests:
    """XXH3-128 of messages, as part of a program; the status is 1 + the first that has an infinity or NaN.

    Threads share them if they are worth it, and arrays of more than 64 KiB among themselves. Raises ValueError for too
    long a head.
    """

    def __init__(self, messages: Sequence[Message]) -> None:
        self._items = items_of(messages)
        self._worth_threads = int(self._items[:, NBYTES].sum()) >= PARALLEL_WORK
        self._kept: list[Any] = [messages]

    def rows(self) -> list[Row]:
        """The calls that make them."""
        self._kept[1:] = []
        items, shared = self._items, self._worth_threads and THREADS.count > 1
        blocks = self._share_blocks(shared=shared)
        made = self._row(xxh3_digests, 0, min(len(items), MAX_PARTS) if shared else 1)
        return [self._row(xxh3_sums, blocks, max(1, min(blocks, 4 * THREADS.count))), made] if blocks else [made]

    def _row(self, kernel: Kernel, blocks: int, parts: int) -> Row:
        words = Words(len(self._items), address_of(self._items), blocks)
        self._kept.append(words)
        return row(kernel, words, parts)

    def _share_blocks(self, *, shared: bool) -> int:
        """Give the long items places for the sums of their blocks, if threads are to share them; how many blocks."""
        items = self._items
        items[:, [SUMS, BLOCKS, BROKEN]] = 0
        long = items[:, NBYTES] >= LONG
        if not shared or not long.any():
            return 0
        items[long, BLOCKS] = (items[long, HEAD_BYTES] + items[long, NBYTES] - 1) // BLOCK
        ends = np.cumsum(items[:, BLOCKS])
        sums = np.empty(STRIPE * int(ends[-1]), np.uint8)
        self._kept.append(sums)
        items[long, SUMS] = address_of(sums) + STRIPE * (ends - items[:, BLOCKS])[long]
        return int(ends[-1])


def items_of(messages: Sequence[Message]) -> Array:
    """The words of some messages, as the kernels take them."""
    items = np.zeros((len(messages), ITEM), np.int64)
    for item, message in zip(items, messages, strict=True):
        if message.head.nbytes > MOST_HEAD:
            raise ValueError(f"Message: head: expected at most {MOST_HEAD} bytes, got {message.head.nbytes}")
        item[HEAD], item[HEAD_BYTES], item[NBYTES] = address_of(message.head), message.head.nbytes, message.nbytes
        item[DATA] = message.data.address
        item[OUT], item[AGAIN] = address_of(message.out), 0 if message.again is None else address_of(message.again)
        if message.numbers is not None:
            item[FIELD], item[ONE] = _EXPONENT.get(message.numbers, (0, 0))
    return items

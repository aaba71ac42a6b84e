"""Digests of the same places again and again: prepared once, then made in one call."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....base.arrays import Array
from ..engine import machine
from ..engine.launch import MAX_PARTS, PARALLEL_WORK, Words
from ..engine.threads import THREADS
from .constants import BLOCK, STRIPE
from .kernels import (
    AGAIN,
    BLOCKS,
    BROKEN,
    FIELD,
    HEAD,
    HEAD_BYTES,
    ITEM,
    NBYTES,
    OBJECT,
    ONE,
    OUT,
    SUMS,
    xxh3_digests,
    xxh3_sums,
)
from .message import MOST_HEAD

LONG = 1 << 16
"""Bytes from which several threads share an array."""

_WORD = np.dtype(np.int64)
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
        data: the array, in row-major order; None where `Digests.point` names it before each run.
        again: 16 bytes that it goes to as well.
        numbers: the dtype of the elements, if an infinity or NaN among them is to be found; other dtypes have none.
    """

    head: Array
    nbytes: int
    out: Array
    data: Array | None = None
    again: Array | None = None
    numbers: np.dtype[Any] | None = None


class Digests:
    """XXH3-128 of many messages. Each stage is made after the one before it, whose digests its messages may hold.

    Arrays of more than 64 KiB in the first stage are shared among threads. Raises ValueError for too long a head.

    >>> from xxhash import xxh3_128_digest
    >>> x, head, out = np.arange(3.0), np.zeros(16, np.uint8), np.empty(16, np.uint8)
    >>> digests = Digests([[Message(head, x.nbytes, out, numbers=x.dtype)]])
    >>> digests.point(0, x)
    >>> digests.run(), out.tobytes() == xxh3_128_digest(bytes(16) + x.tobytes())
    (0, True)
    >>> x[1] = np.nan
    >>> digests.run()
    1
    """

    def __init__(self, stages: Sequence[Sequence[Message]]) -> None:
        self._stages = [_items(messages) for messages in stages]
        self._kept: list[Any] = [stages]
        self._fault = np.zeros(2, np.int64)
        self._fault_address = _address(self._fault)
        self._run = machine.run_fed(0)
        self._threads = self._address = self._count = 0
        self._shared = False

    def point(self, number: int, array: Array) -> None:
        """Have the elements of a message of the first stage be those of ``array``, which must stay as long as that."""
        self._stages[0][number, OBJECT] = id(array)

    def run(self) -> int:
        """Make all digests: 0, or 1 + the number of the first message of the first stage with an infinity or NaN."""
        if self._threads != THREADS.count:
            self._bind()
        if self._shared:
            with THREADS.lent() as control:
                failed = self._run(self._address, self._count, control, self._fault_address, 0, 0, ())
        else:
            failed = self._run(self._address, self._count, 0, self._fault_address, 0, 0, ())
        return int(self._fault[0]) if failed else 0

    def _bind(self) -> None:
        """The rows of the machine for as many threads as there are."""
        self._threads = THREADS.count
        first = self._stages[0]
        self._shared = THREADS.count > 1 and int(first[:, NBYTES].sum()) >= PARALLEL_WORK
        table = np.zeros(1, np.int64)
        self._kept[1:] = [table]
        rows = [self._row(xxh3_digests, table, items, 0, self._shared and items is first) for items in self._stages]
        blocks = self._share_blocks(first)
        if blocks:
            rows.insert(0, self._row(xxh3_sums, table, first, blocks, shared=True))
        program = np.array(rows, np.int64)
        self._kept.append(program)
        self._address, self._count = _address(program), len(program)
        self._shared = bool((program[:, machine.PARTS] > 1).any())

    def _row(self, kernel: Any, table: Array, items: Array, blocks: int, shared: bool) -> list[int]:
        words = Words(len(items), _address(items), blocks)
        self._kept.append(words)
        parts = max(1, min(blocks or len(items), 4 * THREADS.count if blocks else MAX_PARTS)) if shared else 1
        return [kernel.address(_WORD), _address(table), words.address, parts]

    def _share_blocks(self, items: Array) -> int:
        """Give the long items places for the sums of their blocks, if threads are to share them; how many blocks."""
        items[:, [SUMS, BLOCKS, BROKEN]] = 0
        long = items[:, NBYTES] >= LONG
        if not self._shared or not long.any():
            return 0
        items[long, BLOCKS] = (items[long, HEAD_BYTES] + items[long, NBYTES] - 1) // BLOCK
        ends = np.cumsum(items[:, BLOCKS])
        sums = np.empty(STRIPE * int(ends[-1]), np.uint8)
        self._kept.append(sums)
        items[long, SUMS] = _address(sums) + STRIPE * (ends - items[:, BLOCKS])[long]
        return int(ends[-1])


def _items(messages: Sequence[Message]) -> Array:
    """The words of some messages."""
    items = np.zeros((len(messages), ITEM), np.int64)
    for item, message in zip(items, messages, strict=True):
        if message.head.nbytes > MOST_HEAD:
            raise ValueError(f"Message: head: expected at most {MOST_HEAD} bytes, got {message.head.nbytes}")
        item[HEAD], item[HEAD_BYTES], item[NBYTES] = _address(message.head), message.head.nbytes, message.nbytes
        item[OBJECT] = 0 if message.data is None else id(message.data)
        item[OUT], item[AGAIN] = _address(message.out), 0 if message.again is None else _address(message.again)
        if message.numbers is not None:
            item[FIELD], item[ONE] = _EXPONENT.get(message.numbers, (0, 0))
    return items


def _address(array: Array) -> int:
    return int(array.ctypes.data)

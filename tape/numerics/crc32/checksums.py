"""Checksums of the same places again and again, as part of a program."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....base import crc32
from ....base.arrays import Array
from ..engine.intrinsics import move, put_word, stack_words, word
from ..engine.kernel import kernel
from ..engine.launch import Words
from ..prepared.places import address_of
from ..prepared.prepared_calls import Row, row
from ..simd.lanes import inlined

COUNT, ITEMS = range(2)
ITEM = 4
DATA, NBYTES, BEFORE, OUT = range(ITEM)
"""Of each: address and bytes of what it is of; the CRC-32 of what comes before that; where it goes."""


_feed_byte, _feed, _feed_two = inlined(crc32.feed_byte), inlined(crc32.feed), inlined(crc32.feed_two)
_ONES = crc32.ONES


@inlined
def _crc32(address, n, before):
    """The CRC-32 of some bytes, behind bytes whose CRC-32 is ``before``."""
    crc = np.uint64(before) ^ _ONES
    for i in range(n // 16):
        crc = _feed_two(np.uint64(word(address, 2 * i)), np.uint64(word(address, 2 * i + 1)), crc)
    if n & 8:
        crc = _feed(np.uint64(word(address, n // 16 * 2)), crc)
    rest = stack_words(1)
    put_word(rest, 0, 0)
    move(rest, address + n - (n & 7), n & 7)
    for i in range(n & 7):
        crc = _feed_byte(np.uint64(word(rest, 0)) >> np.uint64(8 * i), crc)
    return np.int64(crc ^ _ONES)


@kernel
def crc32_each(table, ints, part, parts):
    """The CRC-32 of some places, one after the other, each 4 bytes."""
    made = stack_words(1)
    for k in range(word(ints, COUNT)):
        item = word(ints, ITEMS) + 8 * ITEM * k
        put_word(made, 0, _crc32(word(item, DATA), word(item, NBYTES), word(item, BEFORE)))
        move(word(item, OUT), made, 4)
    return 0


class Checksum(NamedTuple):
    """The CRC-32 of an array's bytes, behind bytes whose CRC-32 is ``before``; it goes to the 4 bytes of ``out``."""

    data: Array
    out: Array
    before: int = 0


class Checksums:
    """Checksums made in turn: one may be of bytes that the one before is among.

    >>> from zlib import crc32
    >>> from ..prepared.prepared_calls import PreparedCalls
    >>> data, out = np.arange(11, dtype=np.uint8), np.zeros(4, np.uint8)
    >>> PreparedCalls(Checksums([Checksum(data, out, crc32(b"salt"))])).run()
    0
    >>> int.from_bytes(out.tobytes(), "little") == crc32(b"salt" + data.tobytes())
    True
    """

    def __init__(self, checksums: Sequence[Checksum]) -> None:
        items = [(address_of(c.data), c.data.nbytes, c.before, address_of(c.out)) for c in checksums]
        table = np.array(items, np.int64).reshape(-1, ITEM)
        self._kept = (checksums, table)
        self._words = Words(len(table), address_of(table))

    def rows(self) -> list[Row]:
        """The call that makes them."""
        return [row(crc32_each, self._words)]

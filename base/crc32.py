"""The register of CRC-32 as in zlib (reflected polynomial), fed 8 or 16 bytes at a time: "slicing by 8".

Kounavis and Berry, 2005. Words and registers are ``np.uint64``. Compiled code inlines these functions, so that none of
them calls another.
"""

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL = 0xEDB88320

ONES = np.uint64(0xFFFFFFFF)
"""What the register begins with, and what it is turned with at the end."""

_BYTE = np.uint64(0xFF)
_1, _2, _3, _4, _5, _6, _7 = map(np.uint64, range(8, 64, 8))
"""How far the bytes of a word are shifted."""


def _tables() -> NDArray[np.uint32]:
    """Tables (16, 256): row k is the effect of a byte on the register, k bytes later."""
    row = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        row = (row >> np.uint32(1)) ^ np.where(row & np.uint32(1), np.uint32(POLYNOMIAL), np.uint32(0))
    tables = [row]
    for _ in range(15):
        tables.append((tables[-1] >> np.uint32(8)) ^ row[tables[-1] & np.uint32(0xFF)])
    return np.array(tables)


TABLES = _tables()


def feed_byte(byte: np.uint64, crc: np.uint64) -> np.uint64:
    """The register after one byte.

    >>> from zlib import crc32
    >>> int(feed_byte(np.uint64(7), ONES) ^ ONES) == crc32(bytes([7]))
    True
    """
    return np.uint64(TABLES[0, (crc ^ byte) & _BYTE]) ^ (crc >> _1)


def feed(word: np.uint64, crc: np.uint64) -> np.uint64:
    """The register after the 8 bytes of a word.

    >>> from zlib import crc32
    >>> int(feed(np.uint64(7), ONES) ^ ONES) == crc32(bytes([7, 0, 0, 0, 0, 0, 0, 0]))
    True
    """
    a = word ^ crc
    low = TABLES[7, a & _BYTE] ^ TABLES[6, a >> _1 & _BYTE] ^ TABLES[5, a >> _2 & _BYTE] ^ TABLES[4, a >> _3 & _BYTE]
    high = TABLES[3, a >> _4 & _BYTE] ^ TABLES[2, a >> _5 & _BYTE] ^ TABLES[1, a >> _6 & _BYTE] ^ TABLES[0, a >> _7]
    return np.uint64(low ^ high)


def feed_two(first: np.uint64, second: np.uint64, crc: np.uint64) -> np.uint64:
    """The register after 16 bytes, whose two words do not wait for each other.

    >>> from zlib import crc32
    >>> int(feed_two(np.uint64(7), np.uint64(9), ONES) ^ ONES) == crc32(bytes([7, *[0] * 7, 9, *[0] * 7]))
    True
    """
    a, b, t = first ^ crc, second, TABLES
    low = t[15, a & _BYTE] ^ t[14, a >> _1 & _BYTE] ^ t[13, a >> _2 & _BYTE] ^ t[12, a >> _3 & _BYTE]
    high = t[11, a >> _4 & _BYTE] ^ t[10, a >> _5 & _BYTE] ^ t[9, a >> _6 & _BYTE] ^ t[8, a >> _7]
    next_low = t[7, b & _BYTE] ^ t[6, b >> _1 & _BYTE] ^ t[5, b >> _2 & _BYTE] ^ t[4, b >> _3 & _BYTE]
    next_high = t[3, b >> _4 & _BYTE] ^ t[2, b >> _5 & _BYTE] ^ t[1, b >> _6 & _BYTE] ^ t[0, b >> _7]
    return np.uint64(low ^ high ^ next_low ^ next_high)

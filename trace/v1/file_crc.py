"""The CRC-32 over all records, in closed form.

A message followed by its own CRC-32 takes the CRC register to a state that does not depend on the message.
Every valid record is a message of 64 bytes, its CRC and four zeros, so the CRC-32 of N valid records depends
on N alone. The writer uses this to have `file_crc32` without a second pass over the data; a reader must
compute it from the bytes, and does.

The arithmetic is that of zlib's `crc32_combine`: polynomials over GF(2) modulo the CRC's, bits reflected
(bit 31 is the coefficient of x^0).
"""

import zlib

from ...base.crc32 import POLYNOMIAL
from .layout import RECORD_CRC_SPAN, RECORD_SIZE

_ONE = 1 << 31
_X_TO_THE_8 = 1 << 23
_ANY_BODY = bytes(RECORD_CRC_SPAN)
_ONE_RECORD = zlib.crc32(_ANY_BODY + zlib.crc32(_ANY_BODY).to_bytes(4, "little") + bytes(4))


def _multiply(a: int, b: int) -> int:
    """Return a*b modulo the polynomial (zlib's `multmodp`)."""
    product = 0
    for power in range(32):
        if a & (_ONE >> power):
            product ^= b
        b = (b >> 1) ^ (POLYNOMIAL if b & 1 else 0)
    return product


def _shift(count: int) -> int:
    """Return x^(8*count) modulo the polynomial: what appending `count` bytes multiplies a CRC by."""
    result, square = _ONE, _X_TO_THE_8
    while count:
        if count & 1:
            result = _multiply(square, result)
        square = _multiply(square, square)
        count >>= 1
    return result


def valid_records_crc32(count: int) -> int:
    """Return the CRC-32 of `count` consecutive valid records, in O(log count).

    >>> [f"{valid_records_crc32(n):08x}" for n in (0, 1, 2, 100)]
    ['00000000', '6522df69', 'e4c37cdd', 'a2230f96']
    """
    crc, length = 0, 0
    for bit in f"{count:b}":
        crc, length = _multiply(_shift(RECORD_SIZE * length), crc) ^ crc, 2 * length
        if bit == "1":
            crc, length = _multiply(_shift(RECORD_SIZE), crc) ^ _ONE_RECORD, length + 1
    return crc

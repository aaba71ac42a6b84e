"""Where the bytes that a prepared call reads lie: named by a word that holds their address, so that they may move."""

from typing import NamedTuple

from ....base.arrays import Array
from ..engine.intrinsics import DATA_FIELD


class BytePlace(NamedTuple):
    """The address of a word that holds the address of some bytes, and what keeps that word in memory."""

    address: int
    keeper: object


def place_of(array: Array) -> BytePlace:
    """The place of an array's elements, which are in row-major order."""
    return BytePlace(id(array) + DATA_FIELD, array)


def address_of(array: Array) -> int:
    """The address of an array's first element."""
    return int(array.ctypes.data)

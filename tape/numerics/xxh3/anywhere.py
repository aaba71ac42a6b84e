"""Digests and copies of arrays of one kind that lie now here, now there, in memory that is no numpy array's."""

from collections.abc import Sequence
from ctypes import addressof, c_int64
from typing import Any

import numpy as np

from ....base.arrays import Array
from ..basic.copy import copy, copy_words
from ..engine import machine
from ..engine.launch import Words
from ..prepared.places import BytePlace, address_of
from ..prepared.prepared_calls import row
from .constants import DIGEST
from .digests import Message, items_of
from .kernels import xxh3_digests

_MOVED = {1: np.dtype(np.bool_), 4: np.dtype(np.float32), 8: np.dtype(np.float64)}
"""The dtypes as which elements of so many bytes are copied."""


class Room:
    """Memory to copy an array to; it grows to the longest."""

    def __init__(self) -> None:
        self._bytes: Array = np.empty(0, np.uint8)

    def at(self, nbytes: int) -> int:
        """The address of so many bytes."""
        if self._bytes.nbytes < nbytes:
            self._bytes = np.empty(nbytes, np.uint8)
        return address_of(self._bytes)

    def first(self, nbytes: int) -> Array:
        """What lies in the first bytes."""
        return self._bytes[:nbytes]


class CopyAnywhere:
    """The elements of an array in row-major order, in a room until the next copy; a call says where the array lies.

    Args:
        shape, strides: of the array, the latter in bytes.
        itemsize: 1, 4 or 8.
        room: where the copy lies.

    >>> x = np.arange(6.0).reshape(2, 3)
    >>> CopyAnywhere(x.T.shape, x.T.strides, 8, Room())(address_of(x)).view(np.float64)
    array([0., 3., 1., 4., 2., 5.])
    """

    def __init__(self, shape: Sequence[int], strides: Sequence[int], itemsize: int, room: Room) -> None:
        self._nbytes, self._room = itemsize * int(np.prod(shape, dtype=np.int64)), room
        self._words, self._table = copy_words(shape, strides, itemsize), (c_int64 * 2)()
        self._rows = np.array([[copy.address(_MOVED[itemsize]), addressof(self._table), self._words.address, 1]])
        self._launch = machine.run_fed(0)

    def __call__(self, address: int) -> Array:
        """The bytes of the copy."""
        self._table[0], self._table[1] = self._room.at(self._nbytes), address
        self._launch(address_of(self._rows), 1, 0, 0, 0, 0, ())
        return self._room.first(self._nbytes)


class DigestAnywhere:
    """XXH3-128 of a head and an array behind it, in row-major order, on one thread; a call says where the array lies.

    What is not in that order is copied to a room first, which the caller hands on to the next.

    Args:
        head: at most 960 bytes; a whole number of words where ``numbers`` is given.
        shape, itemsize: of the array.
        numbers: the dtype of the elements, if an infinity or NaN among them is to be found.
        strides: in bytes, of an array in another order, with elements of 1, 4 or 8 bytes.
        room: where that is copied to.

    >>> x = np.arange(6.0).reshape(2, 3)
    >>> whole = DigestAnywhere(bytes(8), x.shape, 8)
    >>> turned = DigestAnywhere(bytes(8), x.T.shape, 8, strides=x.T.strides, room=Room())
    >>> turned(address_of(x)) == whole(address_of(x.T.copy())), turned(address_of(x)) == whole(address_of(x))
    (True, False)
    """

    __slots__ = ("_address", "_count", "_fault", "_kept", "_launch", "_nbytes", "_out", "_room", "_rows", "_table")

    def __init__(
        self,
        head: bytes,
        shape: Sequence[int],
        itemsize: int,
        numbers: "np.dtype[Any] | None" = None,
        *,
        strides: Sequence[int] | None = None,
        room: Room | None = None,
    ) -> None:
        self._nbytes = itemsize * int(np.prod(shape, dtype=np.int64))
        self._address, out, self._room = c_int64(), np.zeros(DIGEST, np.uint8), room
        place = BytePlace(addressof(self._address), self._address)
        items = items_of([Message(np.frombuffer(head, np.uint8), self._nbytes, out, place, numbers=numbers)])
        words, table, fault = Words(1, address_of(items), 0), (c_int64 * 2)(), np.zeros(2, np.int64)
        rows, copied = [row(xxh3_digests, words)], None
        if strides is not None:
            copied = copy_words(shape, strides, itemsize)
            rows.insert(0, [copy.address(_MOVED[itemsize]), addressof(table), copied.address, 1])
        made = np.array(rows, np.int64)
        self._rows, self._count, self._out, self._table = address_of(made), len(made), out.data, table
        self._fault, self._launch = address_of(fault), machine.run_fed(0)
        self._kept = made, items, words, copied, fault, head

    def __call__(self, address: int) -> bytes | None:
        """The digest; None where a number is not finite."""
        if self._room is not None:
            self._table[1] = address
            address = self._table[0] = self._room.at(self._nbytes)
        self._address.value = address
        return None if self._launch(self._rows, self._count, 0, self._fault, 0, 0, ()) else bytes(self._out)

"""Arrays of a batch as one row of bytes, which ranks give one another."""

import json
from math import prod
from typing import Any

import numpy as np

from ...base.arrays import Array
from ..step.batch import batch_arrays

_LENGTH = 8
"""Bytes of the number in front: how long the description of the arrays is."""


def pack(batch: Any) -> Array:
    """The arrays of a batch in their order, each with its dtype and shape, as bytes.

    >>> [array.tolist() for array in unpack(pack(({"x": np.array([1.5, 2.0])}, 7)))]
    [[1.5, 2.0], 7]
    """
    arrays = [np.asarray(array) for array in batch_arrays(batch)]
    told = json.dumps([(array.dtype.str, array.shape) for array in arrays]).encode()
    parts = [len(told).to_bytes(_LENGTH, "little"), told, *[array.tobytes() for array in arrays]]
    return np.frombuffer(b"".join(parts), np.uint8)


def unpack(packet: Array) -> list[Array]:
    """The arrays of a batch that `pack` made bytes of: copies."""
    data = packet.tobytes()
    end = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    told: list[tuple[str, list[int]]] = json.loads(data[_LENGTH:end])
    found: list[Array] = []
    for dtype, shape in told:
        found.append(np.frombuffer(data, dtype, prod(shape), end).reshape(shape))
        end += found[-1].nbytes
    return found

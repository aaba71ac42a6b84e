"""Means of single numbers of any dtype, in float64, as part of a program."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
from collections.abc import Sequence

import numpy as np

from ....base.arrays import Array
from ..engine.intrinsics import word
from ..engine.kernel import kernel, vector, vector_as
from ..engine.launch import Words
from .places import address_of
from .prepared_calls import Row

BEFORE, COUNT = range(2)
"""How many numbers were added before; how many there are in all, 0 for one that is only converted."""


@kernel
def add_number(table, ints, part, parts):
    """A number, added to a sum that begins with 0.0; the last makes the mean of it. Table: sum (float64), number."""
    out, before, count = vector_as(table, 0.0, 0, 0, 1), word(ints, BEFORE), word(ints, COUNT)
    total = np.float64(vector(table, 1, 0, 1)[0])
    if count > 0:
        total = (0.0 if before == 0 else out[0]) + total
        total = total / count if before + 1 == count else total
    out[0] = total if total == total else np.nan
    return 0


class NumberMeans:
    """The means of some numbers each, which are arrays of one element, in their order; ``out`` has one after the other.

    Where all are ``single``, each is what its one number is in float64, a zero with its sign. A NaN is numpy's own.

    >>> from .prepared_calls import PreparedCalls
    >>> out, x, y = np.zeros(2), np.array(True), np.array(0.5, np.float32)
    >>> PreparedCalls(NumberMeans(out, [[x], [x, y]])).run(), out
    (0, array([1.  , 0.75]))
    """

    def __init__(self, out: Array, numbers: Sequence[Sequence[Array]], *, single: bool = False) -> None:
        self._kept = (out, numbers)
        self._calls = [
            (x, np.array([address_of(out[k:]), address_of(x)], np.int64), Words(i, 0 if single else len(each)))
            for k, each in enumerate(numbers)
            for i, x in enumerate(each)
        ]

    def rows(self) -> list[Row]:
        """The calls that make them."""
        return [[add_number.address(x.dtype), address_of(table), words.address, 1] for x, table, words in self._calls]

"""The sums of several ranks folded as the tree says, by the kernels of `add` and `divide` and without fresh memory."""

from collections.abc import Sequence

from ...base.arrays import Array
from ...tape.numerics.basic import arithmetic
from ...tape.numerics.engine.launch import launch
from ...tape.ops.elementwise.kernels import basic as kernels
from ..optim.arrays import prepared_words
from ..step.tree import Sums

BLOCK = 1 << 15
"""Elements that are folded at once, so that sums stay in a cache."""


def fold_means(out: Array, rows: Sequence[Array], stops: Sequence[int], count: int) -> None:
    """Write the mean over ``count`` micro-batches to ``out``, from their sums in order, which are overwritten.

    Args:
        out: one row of float32 or float64; it may be one of ``rows``.
        rows: as long, one for each sum.
        stops: behind which micro-batch each sum ends.
        count: the micro-batches of a step.

    >>> import numpy as np
    >>> out, rows = np.zeros(2), [np.array([1.0, 2.0]), np.array([3.0, 6.0])]
    >>> fold_means(out, rows, [1, 2], 2)
    >>> out
    array([2., 4.])
    """
    for first in range(0, len(out), BLOCK):
        block = slice(first, first + BLOCK)
        sums = Sums[Array]("tree", count, add=_added)
        for row, stop in zip(rows, stops, strict=True):
            sums.put(row[block], stop)
        _divided(out[block], sums.total, count)


def _added(a: Array, b: Array) -> Array:
    """``a``, to which ``b`` was added in place."""
    launch(arithmetic.add, a.dtype, prepared_words(len(a)), (a, a, b), len(a))
    return a


def _divided(out: Array, total: Array, count: int) -> None:
    """A sum divided by the number of micro-batches; by 1 it is not divided."""
    if count == 1:
        out[:] = total
    else:
        launch(kernels.divide, out.dtype, prepared_words(len(out), count), (out, total), len(out))

"""Weighted sums of cells: which each output reads along up to three axes, transposed for the gradient, as a kernel."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan

from ....numerics.engine.code_for import GPU
from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.math.exact import quotient
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import float_of
from .spread import (
    BLOCK,
    CELLS,
    COLUMN_CELLS,
    COLUMN_WEIGHTS,
    COLUMNS,
    HEAD,
    LAYER_WINDOWS,
    LAYERS,
    LINES,
    ROW_WINDOWS,
    ROWS,
    SOURCE_COLUMNS,
    SOURCE_LAYERS,
    SOURCE_ROWS,
    blocks,
    more,
    visit_blocks,
)

Weighted = tuple[tuple[int, Fraction], ...]
"""The cells of one window along one axis, ascending, each with its weight."""


@dataclass(frozen=True)
class WeightedAxis:
    """The windows along one axis of ``source`` cells."""

    source: int
    windows: tuple[Weighted, ...]

    def transposed(self) -> "WeightedAxis":
        """For each cell the windows that hold it, with the same weights."""
        holders: list[list[tuple[int, Fraction]]] = [[] for _ in range(self.source)]
        for o, window in enumerate(self.windows):
            for cell, weight in window:
                holders[cell].append((o, weight))
        return WeightedAxis(len(self.windows), tuple(map(tuple, holders)))

    @property
    def longest(self) -> int:
        """The most cells of a window, at least 1."""
        return max(1, *map(len, self.windows))


def words(volumes: int, axes: Sequence[WeightedAxis]) -> tuple[float, ...]:
    """The words of `weighted_sums`."""
    whole = [*[WeightedAxis(1, (((0, Fraction(1)),),))] * (3 - len(axes)), *axes]
    sizes, sources = [len(axis.windows) for axis in whole], [axis.source for axis in whole]
    layers, rows, columns = sizes
    place = HEAD + 2 * (layers + rows)
    windows: list[int] = []
    cells: list[float] = []
    for window in [window for axis in whole[:2] for window in axis.windows]:
        windows += [place + len(cells), len(window)]
        for cell, weight in window:
            cells += [cell, quotient(weight.numerator, weight.denominator)]
    place += len(cells)
    most = whole[2].longest
    padded = [[*window, *[(0, None)] * (most - len(window))] for window in whole[2].windows]
    for j in range(most):
        cells += [window[j][0] for window in padded]
    for j in range(most):
        weights = [window[j][1] for window in padded]
        cells += [nan if weight is None else quotient(weight.numerator, weight.denominator) for weight in weights]
    places = (HEAD, HEAD + 2 * layers, most, place, place + most * columns)
    block = blocks(most, whole[1].longest, whole[0].longest)
    return (volumes * layers * rows, *sizes, *sources, *places, *block, *windows, *cells)


@inlined
def _weighted_sum(table, ints, x, down, across, column):
    total, columns = real(table, 0.0), word(ints, COLUMNS)
    for z in range(word(ints, down), word(ints, down) + 2 * word(ints, down + 1), 2):
        layer, deep = word(ints, z) * word(ints, SOURCE_ROWS), real(table, float_of(word(ints, z + 1)))
        for v in range(word(ints, across), word(ints, across) + 2 * word(ints, across + 1), 2):
            begin = (layer + word(ints, v)) * word(ints, SOURCE_COLUMNS)
            vertical = deep * real(table, float_of(word(ints, v + 1)))
            for h in range(column, column + word(ints, CELLS) * columns, columns):
                weight = real(table, float_of(word(ints, word(ints, COLUMN_WEIGHTS) + h)))
                total = more(total, vertical, weight, x[begin + word(ints, word(ints, COLUMN_CELLS) + h)])
    return total


@kernel
def weighted_sums(table, ints, part, parts):
    """``out[o] = fma((Z·V)·H, x, sum)`` over the cells of window o, from +0; Z, V, H are the weights along the axes."""
    if not GPU and word(ints, BLOCK):
        return visit_blocks(table, ints, part, parts)
    layers, rows, columns = word(ints, LAYERS), word(ints, ROWS), word(ints, COLUMNS)
    start, count = share(word(ints, LINES) * columns, part, parts)
    size = word(ints, SOURCE_LAYERS) * word(ints, SOURCE_ROWS) * word(ints, SOURCE_COLUMNS)
    out = vector(table, 0, start, count)
    for i in range(count):
        line, column = (start + i) // columns, (start + i) % columns
        x = vector(table, 1, line // (layers * rows) * size, size)
        down, across = (
            word(ints, LAYER_WINDOWS) + 2 * (line // rows % layers),
            word(ints, ROW_WINDOWS) + 2 * (line % rows),
        )
        out[i] = _weighted_sum(table, ints, x, down, across, column)
    return 0

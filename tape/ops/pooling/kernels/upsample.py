"""Weighted sums of cells: which each output reads along up to three axes, transposed for the gradient, as a kernel."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.math.exact import quotient
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import float_of, fma

# Positions of the words: lines of the outputs of all volumes; layers, rows and columns of the output of one and of its
# source; where the first layer's windows stand, the first row's, and the first column's.
LINES, LAYERS, ROWS, COLUMNS, SOURCE_LAYERS, SOURCE_ROWS, SOURCE_COLUMNS = range(7)
LAYER_WINDOWS, ROW_WINDOWS, COLUMN_WINDOWS, HEAD = range(7, 11)

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


def words(volumes: int, axes: Sequence[WeightedAxis]) -> tuple[float, ...]:
    """The words of `weighted_sums`: for each window where its cells stand and how many they are, then the cells."""
    whole = [*[WeightedAxis(1, (((0, Fraction(1)),),))] * (3 - len(axes)), *axes]
    layers, rows, columns = [len(axis.windows) for axis in whole]
    place = HEAD + 2 * (layers + rows + columns)
    windows: list[int] = []
    cells: list[float] = []
    for window in [window for axis in whole for window in axis.windows]:
        windows += [place + len(cells), len(window)]
        for cell, weight in window:
            cells += [cell, quotient(weight.numerator, weight.denominator)]
    sizes, sources = (layers, rows, columns), [axis.source for axis in whole]
    places = (HEAD, HEAD + 2 * layers, HEAD + 2 * (layers + rows))
    return (volumes * layers * rows, *sizes, *sources, *places, *windows, *cells)


@inlined
def _weighted_sum(table, ints, x, down, across, along):
    total = real(table, 0.0)
    for z in range(word(ints, down), word(ints, down) + 2 * word(ints, down + 1), 2):
        layer, deep = word(ints, z) * word(ints, SOURCE_ROWS), real(table, float_of(word(ints, z + 1)))
        for v in range(word(ints, across), word(ints, across) + 2 * word(ints, across + 1), 2):
            begin = (layer + word(ints, v)) * word(ints, SOURCE_COLUMNS)
            vertical = deep * real(table, float_of(word(ints, v + 1)))
            for h in range(word(ints, along), word(ints, along) + 2 * word(ints, along + 1), 2):
                weight = vertical * real(table, float_of(word(ints, h + 1)))
                total = fma(weight, x[begin + word(ints, h)], total)
    return total


@kernel
def weighted_sums(table, ints, part, parts):
    """``out[o] = fma((Z·V)·H, x, sum)`` over the cells of window o, from +0; Z, V, H are the weights along the axes."""
    start, count = share(word(ints, LINES), part, parts)
    layers, rows, columns = word(ints, LAYERS), word(ints, ROWS), word(ints, COLUMNS)
    size = word(ints, SOURCE_LAYERS) * word(ints, SOURCE_ROWS) * word(ints, SOURCE_COLUMNS)
    for line in range(start, start + count):
        out = vector(table, 0, line * columns, columns)
        x = vector(table, 1, line // (layers * rows) * size, size)
        down, across = (
            word(ints, LAYER_WINDOWS) + 2 * (line // rows % layers),
            word(ints, ROW_WINDOWS) + 2 * (line % rows),
        )
        for column in range(columns):
            along = word(ints, COLUMN_WINDOWS) + 2 * column
            out[column] = _weighted_sum(table, ints, x, down, across, along)
    return 0

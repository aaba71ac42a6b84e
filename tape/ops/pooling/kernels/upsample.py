"""Bilinear upsampling: the cells that each output reads with their weights, transposed for the gradient, as a kernel.

Along each axis an output reads the two cells next to its position, or one if it stands on it.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from dataclasses import dataclass
from fractions import Fraction

from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.math.exact import quotient
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import float_of, fma

# Positions of the words: rows and columns of the outputs of all planes and of one, and of the source of one; where
# the first output row's windows stand, and the first column's.
LINES, ROWS, COLUMNS, SOURCE_ROWS, SOURCE_COLUMNS, ROW_WINDOWS, COLUMN_WINDOWS, HEAD = range(8)

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


def position(o: int, size: int, count: int, *, align_corners: bool) -> Fraction:
    """Where output ``o`` of ``count`` stands on an axis of ``size`` cells, as PyTorch places it.

    >>> [str(position(o, 2, 4, align_corners=False)) for o in range(4)]
    ['0', '1/4', '3/4', '1']
    """
    if align_corners:
        return Fraction(o * (size - 1), count - 1) if count > 1 else Fraction(0)
    return min(max(Fraction((2 * o + 1) * size - count, 2 * count), Fraction(0)), Fraction(size - 1))


def bilinear(size: int, count: int, *, align_corners: bool) -> WeightedAxis:
    """The cells beside each position and their weights; a cell of weight 0 is none.

    >>> bilinear(2, 3, align_corners=True).windows[1]
    ((0, Fraction(1, 2)), (1, Fraction(1, 2)))
    """
    windows: list[Weighted] = []
    for o in range(count):
        at = position(o, size, count, align_corners=align_corners)
        cell = at.numerator // at.denominator
        share = at - cell
        windows.append(((cell, 1 - share), (cell + 1, share)) if share else ((cell, Fraction(1)),))
    return WeightedAxis(size, tuple(windows))


def words(planes: int, rows: WeightedAxis, columns: WeightedAxis) -> tuple[float, ...]:
    """The words of `weighted_sums`: for each window where its cells stand and how many they are, then the cells."""
    place = HEAD + 2 * (len(rows.windows) + len(columns.windows))
    windows: list[int] = []
    cells: list[float] = []
    for window in (*rows.windows, *columns.windows):
        windows += [place + len(cells), len(window)]
        for cell, weight in window:
            cells += [cell, quotient(weight.numerator, weight.denominator)]
    n, m = len(rows.windows), len(columns.windows)
    return (planes * n, n, m, rows.source, columns.source, HEAD, HEAD + 2 * n, *windows, *cells)


@inlined
def _weighted_sum(table, ints, x, across, along):
    total = real(table, 0.0)
    for v in range(word(ints, across), word(ints, across) + 2 * word(ints, across + 1), 2):
        begin, vertical = word(ints, v) * word(ints, SOURCE_COLUMNS), real(table, float_of(word(ints, v + 1)))
        for h in range(word(ints, along), word(ints, along) + 2 * word(ints, along + 1), 2):
            weight = vertical * real(table, float_of(word(ints, h + 1)))
            total = fma(weight, x[begin + word(ints, h)], total)
    return total


@kernel
def weighted_sums(table, ints, part, parts):
    """``out[o] = fma(V·H, x, sum)`` over the cells of window o, from +0; V and H are the weights along the axes."""
    start, count = share(word(ints, LINES), part, parts)
    rows, columns, size = word(ints, ROWS), word(ints, COLUMNS), word(ints, SOURCE_ROWS) * word(ints, SOURCE_COLUMNS)
    for line in range(start, start + count):
        out, x = vector(table, 0, line * columns, columns), vector(table, 1, line // rows * size, size)
        across = word(ints, ROW_WINDOWS) + 2 * (line % rows)
        for column in range(columns):
            along = word(ints, COLUMN_WINDOWS) + 2 * column
            out[column] = _weighted_sum(table, ints, x, across, along)
    return 0

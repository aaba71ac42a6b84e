"""Windows of weighted cells along each axis, transposed for the gradient, and the words that say which they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan

from ....numerics.math.exact import quotient
from ....numerics.simd.vectors import LANES

# Positions of the words: lines of the outputs of all volumes; layers, rows and columns of the output of one and of its
# source; where the first layer's windows stand, and the first row's; how many cells the windows of the columns have;
# where the first cells of all columns stand, followed by their second ones and so on, and in this order their weights;
# how many columns make a block, how many rows of a layer and how many lines in all are kept of its source. A window of
# a layer or a row is two words, where its cells stand and their number; a cell there is its number and its weight.
# Columns with fewer cells have others in addition, of weight NaN: these are not added.
LINES, LAYERS, ROWS, COLUMNS, SOURCE_LAYERS, SOURCE_ROWS, SOURCE_COLUMNS, LAYER_WINDOWS, ROW_WINDOWS = range(9)
CELLS, COLUMN_CELLS, COLUMN_WEIGHTS, BLOCK, ROWS_KEPT, LINES_KEPT, HEAD = range(9, 16)

ROOM, MOST_KEPT = 8192, 64
"""Elements of the room for the weights of a block and the lines kept for it, and the most lines that are."""

Weighted = tuple[tuple[int, Fraction], ...]
"""The cells of one window along one axis, ascending, each with its weight."""


@dataclass(frozen=True)
class WeightedAxis:
    """The windows along one axis of ``source`` cells."""

    source: int
    windows: tuple[Weighted, ...]

    @property
    def longest(self) -> int:
        """The most cells of a window, at least 1."""
        return max(1, *map(len, self.windows))

    def transposed(self) -> "WeightedAxis":
        """For each cell the windows that hold it, with the same weights."""
        holders: list[list[tuple[int, Fraction]]] = [[] for _ in range(self.source)]
        for o, window in enumerate(self.windows):
            for cell, weight in window:
                holders[cell].append((o, weight))
        return WeightedAxis(len(self.windows), tuple(map(tuple, holders)))


def words(volumes: int, axes: Sequence[WeightedAxis]) -> tuple[float, ...]:
    """The words of a kernel of weighted windows for ``volumes`` sources."""
    whole = [*[WeightedAxis(1, (((0, Fraction(1)),),))] * (3 - len(axes)), *axes]
    layers, rows, columns = [len(axis.windows) for axis in whole]
    outer = _one_by_one([*whole[0].windows, *whole[1].windows], HEAD)
    place, most = HEAD + len(outer), whole[2].longest
    sizes = (volumes * layers * rows, layers, rows, columns, *[axis.source for axis in whole])
    places = (HEAD, HEAD + 2 * layers, most, place, place + most * columns)
    return (*sizes, *places, *blocks(*[axis.longest for axis in whole]), *outer, *_side_by_side(whole[2]))


def _one_by_one(windows: Sequence[Weighted], place: int) -> list[float]:
    """Windows that begin at a place, and behind them their cells."""
    found: list[float] = []
    cells: list[float] = []
    for window in windows:
        found += [place + 2 * len(windows) + len(cells), len(window)]
        for cell, weight in window:
            cells += [cell, _rounded(weight)]
    return found + cells


def _side_by_side(axis: WeightedAxis) -> list[float]:
    """The first cells of all windows, their second ones, and so on, and then the weights."""
    cells: list[float] = []
    weights: list[float] = []
    for j in range(axis.longest):
        cells += [window[j][0] if j < len(window) else 0 for window in axis.windows]
        weights += [_rounded(window[j][1]) if j < len(window) else nan for window in axis.windows]
    return cells + weights


def _rounded(weight: Fraction) -> float:
    return quotient(weight.numerator, weight.denominator)


def blocks(layers: int, rows: int, columns: int) -> tuple[int, int, int]:
    """Columns of a block, and how many rows of a layer and lines in all are kept, for windows of so many cells.

    All lines of a window are kept if there is room for them, else one. Blocks are whole vectors, of no column where the
    room is too small for one. The numbers of what is kept are powers of two.

    >>> blocks(1, 4, 4), blocks(1, 32, 64), blocks(1, 1, 1000)
    ((400, 4, 4), (64, 1, 1), (0, 1, 1))
    """
    high = 1 << (rows - 1).bit_length()
    kept = high << (layers - 1).bit_length()
    width = ROOM // (columns * (kept + 1)) // LANES * LANES if kept <= MOST_KEPT else 0
    return (width, high, kept) if width else (ROOM // (2 * columns) // LANES * LANES, 1, 1)

"""Which cells each output of a pool or an upsampling reads: windows along each axis, their transposes, their words.

A window along one axis is ``count`` cells from ``first`` on, ``step`` apart; a window of several axes is the product
of one for each. The cells of a gradient are the outputs of the transposed windows, which list the outputs that read a
cell, in ascending order. So one kernel serves both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

# Positions of the words: how many lines (rows of the last axis) the output has; elements of a line and of a plane (all
# spatial axes), and of the source's plane; the column from which on windows are regular, at how many of its neighbours
# and how often they repeat, their period in the output and their advance in the source; the step along the last axis
# and where its windows stand; a number; which of the `quartered` cells the windows are; where the words for planes side
# by side begin, or 0; the power of two of elements that lie beside each one; how many axes there are before the last;
# and from AXES on for each of these its size, step, pitch in the source, and where its windows stand. A window is two
# words, the first cell and the count.
LINES, COLUMNS, PLANE, SOURCE_PLANE, BEGIN, PHASES, REPEATS, PERIOD, ADVANCE, STEP, WINDOWS, NUMBER = range(12)
QUARTERED, BESIDE, SHIFT, OUTER, AXES = range(12, 17)
AXIS_WORDS = 4

PATTERNS = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (1, 4), (4, 1))
"""Periods and advances for which lines have vector code: window ``c + period`` is window c, ``advance`` cells on."""


WIDTHS = (1, 2, 4, 8, 16)
"""Windows of a line for which cells of two by two have vector code: divisors of the lanes."""

BESIDE_SHIFT = 4
"""Two to this power are the planes that are taken side by side: as many as a vector has lanes."""
BESIDE_CELLS, BESIDE_LINE = 256, 14
"""The largest planes and the longest lines that are: the stack has room for those, and longer lines fill the lanes."""


@dataclass(frozen=True)
class WindowAxis:
    """The windows along one axis of ``source`` cells: what output ``o`` reads is ``counts[o]`` from ``firsts[o]``."""

    source: int
    firsts: tuple[int, ...]
    counts: tuple[int, ...]
    step: int = 1

    @property
    def size(self) -> int:
        """Number of windows."""
        return len(self.firsts)

    def cells(self, o: int) -> range:
        """The cells of window ``o``."""
        return range(self.firsts[o], self.firsts[o] + self.counts[o] * self.step, self.step)

    def transposed(self) -> "WindowAxis":
        """For each cell the windows that hold it, which are equally far apart.

        >>> sliding(4, 3, 2, 1, 1).transposed()
        WindowAxis(source=2, firsts=(0, 0, 1, 1), counts=(1, 2, 1, 1), step=1)
        """
        holders: list[list[int]] = [[] for _ in range(self.source)]
        for o in range(self.size):
            for cell in self.cells(o):
                holders[cell].append(o)
        step = next((held[1] - held[0] for held in holders if len(held) > 1), 1)
        firsts, counts = tuple([held[0] if held else 0 for held in holders]), tuple(map(len, holders))
        return WindowAxis(self.size, firsts, counts, step)

    def regular(self) -> tuple[int, int, int, int]:
        """The most windows side by side that repeat by one of `PATTERNS`: begin, how often, period, advance.

        >>> sliding(8, 3, 1, 1, 1).regular()  # the first and the last window are cut
        (1, 6, 1, 1)
        """
        return max((self._repeats(*pattern) for pattern in PATTERNS), key=lambda found: found[1] * found[2])

    def _repeats(self, period: int, advance: int) -> tuple[int, int, int, int]:
        begin = best_begin = best_end = 0
        for o in range(period, self.size + 1):
            if o - begin > best_end - best_begin:
                best_begin, best_end = begin, o
            if o < self.size and not self._follows(o, o - period, advance):
                begin = o - period + 1
        return best_begin, (best_end - best_begin) // period, period, advance

    def _follows(self, o: int, other: int, advance: int) -> bool:
        same = self.counts[o] == self.counts[other]
        return same and (self.counts[o] == 0 or self.firsts[o] == self.firsts[other] + advance)


def outputs(
    size: int, kernel: int, stride: int, low: int, dilation: int, high: int | None = None, ceil: int = 0
) -> int:
    """How many windows fit an axis with borders, as PyTorch counts them; at most 0 if none does.

    ``high`` is ``low`` if not given. With ``ceil`` the last window may hang over the end, if it starts on a cell or
    before.

    >>> outputs(6, 3, 2, 0, 1), outputs(6, 3, 2, 0, 1, 0, 1)
    (2, 3)
    """
    left = size + low + (low if high is None else high) - dilation * (kernel - 1) - 1
    count = (-(-left // stride) if ceil else left // stride) + 1
    return count - 1 if ceil and (count - 1) * stride >= size + low else count


def sliding(
    size: int, kernel: int, stride: int, low: int, dilation: int, high: int | None = None, ceil: int = 0
) -> WindowAxis:
    """The real cells of windows that slide over an axis with borders; the arguments are those of `outputs`.

    >>> sliding(5, 2, 2, 1, 1)
    WindowAxis(source=5, firsts=(0, 1, 3), counts=(1, 2, 2), step=1)
    """
    firsts: list[int] = []
    counts: list[int] = []
    for o in range(outputs(size, kernel, stride, low, dilation, high, ceil)):
        start = o * stride - low
        skipped = max(0, -(start // dilation))
        firsts.append(start + skipped * dilation)
        counts.append(max(0, min(kernel, -((start - size) // dilation)) - skipped))
    return WindowAxis(size, tuple(firsts), tuple(counts), dilation)


def adaptive(size: int, count: int) -> WindowAxis:
    """``count`` windows that cover an axis: from ``floor(o·size / count)`` to ``ceil((o + 1)·size / count)``.

    >>> adaptive(5, 2)
    WindowAxis(source=5, firsts=(0, 2), counts=(3, 3), step=1)
    """
    firsts = tuple([o * size // count for o in range(count)])
    return WindowAxis(size, firsts, tuple([-(-(o + 1) * size // count) - first for o, first in enumerate(firsts)]))


def nearest(size: int, count: int) -> WindowAxis:
    """One cell for each of ``count`` outputs: ``floor(o·size / count)``."""
    return WindowAxis(size, tuple([o * size // count for o in range(count)]), (1,) * count)


def quartered(axes: Sequence[WindowAxis]) -> int:
    """The place in `WIDTHS`, from 1 on, of lines of windows that divide planes into cells of two by two; 0 for others.

    >>> quartered([sliding(6, 2, 2, 0, 1), sliding(8, 2, 2, 0, 1)]), quartered([sliding(8, 2, 2, 1, 1)] * 2)
    (3, 0)
    """
    halves = [sliding(2 * axis.size, 2, 2, 0, 1) for axis in axes]
    divided = len(axes) == 2 and list(axes) == halves and axes[-1].size in WIDTHS
    return 1 + WIDTHS.index(axes[-1].size) if divided else 0


def beside(planes: int, axes: Sequence[WindowAxis]) -> bool:
    """Whether planes are taken side by side: small ones, and enough to fill the lanes, which their lines would not.

    >>> beside(16, [sliding(8, 3, 2, 1, 1)] * 2), beside(15, [sliding(8, 3, 2, 1, 1)] * 2)
    (True, False)
    """
    cells = max(prod(axis.size for axis in axes), prod(axis.source for axis in axes))
    return planes >= 1 << BESIDE_SHIFT and cells <= BESIDE_CELLS and axes[-1].size <= BESIDE_LINE


def words(planes: int, axes: Sequence[WindowAxis], number: float = 0) -> tuple[float, ...]:
    """The words of a kernel of windows for ``planes`` sources, with a number for the kernel's formula."""
    one_by_one = _words(planes, axes, number)
    if not beside(planes, axes):
        return one_by_one
    side_by_side = _words(1, axes, number, BESIDE_SHIFT)
    return (*one_by_one[:BESIDE], len(one_by_one), *one_by_one[BESIDE + 1 :], *side_by_side)


def _words(planes: int, axes: Sequence[WindowAxis], number: float, shift: int = 0) -> tuple[float, ...]:
    """The words for planes one by one, or as if each of their elements were two to a power of them."""
    whole = [WindowAxis(1, (0,), (1,))] * (2 - len(axes)) + list(axes)
    *outer, last = whole
    table = AXES + AXIS_WORDS * len(outer)
    described: list[int] = []
    windows: list[int] = []
    for i, axis in enumerate(whole):
        place, scale = table + len(windows), 1 << shift if i == len(outer) else 1
        windows += [n for first, count in zip(axis.firsts, axis.counts, strict=True) for n in (first * scale, count)]
        pitch = prod(later.source for later in whole[i + 1 :]) << shift
        described += [axis.size, axis.step, pitch, place]
    *described, _, step, pitch, place = described
    rows, columns, source = prod(axis.size for axis in outer), last.size << shift, prod(axis.source for axis in whole)
    begin, repeats, period, advance = (0, 1 << shift, 1, 1) if shift else last.regular()
    regular = (begin, last.size if shift else period, repeats, period, advance)
    head = (planes * rows, columns, rows * columns, source << shift, *regular, step * pitch, place, number)
    return (*head, quartered(axes), 0, shift, len(outer), *described, *windows)

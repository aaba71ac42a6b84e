"""The cells that an output reads when an axis gets another size, each with its weight, as exact fractions.

Positions are those of PyTorch's ``interpolate``. With ``step`` cells for an output, output o stands at
``(o + 1/2) step - 1/2``, or with aligned corners at ``o (size - 1) / (count - 1)``. A cell of weight 0 is not read.
"""

from collections.abc import Callable
from fractions import Fraction

from .weighted import Weighted, WeightedAxis
from .windows import WindowAxis, adaptive

HALF, QUARTERS = Fraction(1, 2), Fraction(3, 4)


def position(o: int, size: int, count: int, *, align_corners: bool, step: Fraction | None = None) -> Fraction:
    """Where output ``o`` of ``count`` stands, cut to an axis of ``size`` cells.

    >>> [str(position(o, 2, 4, align_corners=False)) for o in range(4)]
    ['0', '1/4', '3/4', '1']
    """
    return min(max(_uncut(o, size, count, align_corners, step), Fraction(0)), Fraction(size - 1))


def _uncut(o: int, size: int, count: int, align_corners: bool, step: Fraction | None) -> Fraction:
    if align_corners:
        return Fraction(o * (size - 1), count - 1) if count > 1 else Fraction(0)
    return (o + HALF) * (step or Fraction(size, count)) - HALF


def nearest_cells(size: int, count: int, step: Fraction | None, *, exact: bool) -> WindowAxis:
    """The cell at ``floor(o step)``, or if ``exact`` at ``floor((o + 1/2) step)``, of each output.

    >>> nearest_cells(3, 2, None, exact=True).firsts, nearest_cells(3, 2, None, exact=False).firsts
    ((0, 2), (0, 1))
    """
    cells = [(o + HALF * exact) * (step or Fraction(size, count)) for o in range(count)]
    return WindowAxis(size, tuple([min(cell.numerator // cell.denominator, size - 1) for cell in cells]), (1,) * count)


def linear(size: int, count: int, *, align_corners: bool, step: Fraction | None = None) -> WeightedAxis:
    """The cells beside each position, weighed by nearness.

    >>> linear(2, 3, align_corners=True).windows[1]
    ((0, Fraction(1, 2)), (1, Fraction(1, 2)))
    """
    windows: list[Weighted] = []
    for o in range(count):
        at = position(o, size, count, align_corners=align_corners, step=step)
        cell = at.numerator // at.denominator
        share = at - cell
        windows.append(((cell, 1 - share), (cell + 1, share)) if share else ((cell, Fraction(1)),))
    return WeightedAxis(size, tuple(windows))


def cubic(size: int, count: int, *, align_corners: bool, step: Fraction | None = None) -> WeightedAxis:
    """Keys' cubic convolution with A = -3/4 of the four cells around each position; those outside are the outermost.

    >>> [str(weight) for _, weight in cubic(4, 8, align_corners=False).windows[3]]
    ['-27/256', '225/256', '67/256', '-9/256']
    """
    windows: list[Weighted] = []
    for o in range(count):
        at = _uncut(o, size, count, align_corners, step)
        first = at.numerator // at.denominator - 1
        held: dict[int, Fraction] = {}
        for c in range(first, first + 4):
            cell = min(max(c, 0), size - 1)
            held[cell] = held.get(cell, Fraction(0)) + _keys(at - c, -QUARTERS)
        windows.append(_read(held))
    return WeightedAxis(size, tuple(windows))


def antialiased(
    size: int, count: int, *, align_corners: bool, step: Fraction | None = None, is_cubic: bool
) -> WeightedAxis:
    """The cells under a filter that is as wide as an output, of triangles or of Keys' cubics with A = -1/2.

    >>> [str(weight) for _, weight in antialiased(4, 2, align_corners=False, is_cubic=False).windows[0]]
    ['3/7', '3/7', '1/7']
    """
    filtered: Callable[[Fraction], Fraction] = (lambda t: _keys(t, -HALF)) if is_cubic else _triangle
    corners = Fraction(size - 1, count - 1) if count > 1 else Fraction(0)
    wide = corners if align_corners else step or Fraction(size, count)
    spread = max(wide, Fraction(1))
    reach = spread * (2 if is_cubic else 1)
    windows: list[Weighted] = []
    for o in range(count):
        centre = wide * (o + HALF)
        first, last = (max(int(centre - reach + HALF), 0), min(int(centre + reach + HALF), size))
        held = {c: filtered((c - centre + HALF) / spread) for c in range(first, last)}
        total = sum(held.values())
        windows.append(_read({c: weight / total for c, weight in held.items()}))
    return WeightedAxis(size, tuple(windows))


def means(size: int, count: int) -> WeightedAxis:
    """The windows of an adaptive pool, each cell weighed alike.

    >>> means(3, 2).windows[0]
    ((0, Fraction(1, 2)), (1, Fraction(1, 2)))
    """
    axis = adaptive(size, count)
    return WeightedAxis(size, tuple([tuple([(c, Fraction(1, axis.counts[o])) for c in axis.cells(o)])
                                     for o in range(count)]))  # fmt: skip


def _read(held: dict[int, Fraction]) -> Weighted:
    return tuple([(cell, weight) for cell, weight in held.items() if weight])


def _triangle(t: Fraction) -> Fraction:
    return max(1 - abs(t), Fraction(0))


def _keys(t: Fraction, a: Fraction) -> Fraction:
    """Keys (1981), Cubic convolution interpolation for digital image processing, equation 15 with A as ``a``."""
    t = abs(t)
    if t <= 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return a * (((t - 5) * t + 8) * t - 4) if t < 2 else Fraction(0)

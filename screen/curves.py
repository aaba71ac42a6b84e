"""Numbers in their order as a curve of characters: in one line, or on some lines with a scale."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .showing import characters

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.-=+*%#"

_LOGARITHMIC = 100
"""From which ratio of the largest to the smallest number the scale is logarithmic."""

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a braille character by row and column; U+2800 is the one without dots."""

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scale:
    """From the least to the greatest of some numbers; logarithmic where that is far, and none is 0 or below."""

    low: float
    high: float

    @classmethod
    def of(cls, numbers: Iterable[float | None]) -> "Scale":
        """The scale of those that are finite; None is none.

        >>> Scale.of([2.0, None, float("nan"), 300.0]), Scale.of([2.0, 300.0]).logarithmic
        (Scale(low=2.0, high=300.0), True)
        """
        known = [x for x in numbers if x is not None and math.isfinite(x)]
        return cls(min(known, default=0.0), max(known, default=0.0))

    @property
    def logarithmic(self) -> bool:
        """Whether heights are logarithms."""
        return self.low > 0 and self.high / self.low > _LOGARITHMIC

    def height(self, x: float) -> float:
        """From 0 for the least to 1 for the greatest."""
        scale = math.log if self.logarithmic else float
        bottom, top = scale(self.low) / 2, scale(self.high) / 2  # halved: a difference of floats must not overflow
        return (scale(x) / 2 - bottom) / (top - bottom) if top > bottom else 0.0

    def character(self, x: float | None, levels: str) -> str:
        """One of the levels; a space where there is no number, "!" for what is not finite."""
        if x is None:
            return " "
        return levels[round(self.height(x) * (len(levels) - 1))] if math.isfinite(x) else "!"


def sparkline(values: npt.ArrayLike, width: int = 40) -> str:
    """A curve in a line: of more numbers than fit means of as many as there are for a character.

    >>> sparkline([1, 2, 3, 4, 5, 6, 7, 8])
    '▁▂▃▄▅▆▇█'
    """
    means = [float(part.mean()) for part in _parts(values, width)]
    scale = Scale.of(means)
    return "".join(scale.character(x, characters(BLOCKS, ASCII)) for x in means)


def plotted(values: npt.ArrayLike, width: int = 72, height: int = 8, first: int = 0) -> list[str]:
    """A curve on some lines, with the least and the greatest number, and where it begins and ends.

    Where many numbers share a column, it goes from their least to their greatest. Lines are at most ``width`` long, and
    of dots, or, where standard output cannot show these, of stars. What is not finite is counted below.

    >>> print("\\n".join(plotted([3, 2, 1], width=12, height=2)))
    3 ┤⠉⠓⠦⢤⣀
    1 ┤    ⠈⠙⠒⠦⣄
       0       2
    """
    x = np.asarray(values, np.float64)
    if not x.size:
        return []
    scale = Scale.of(x.tolist())
    labels = f"{scale.high:.4g}", f"{scale.low:.4g}"
    margin = max(map(len, labels))
    columns = max(width - margin - 2, 1)
    rows = _drawn(x, scale, columns, height)
    sides = [labels[0], *[""] * (height - 2), labels[1]][-height:]
    mark, side = characters("┤", "|"), characters("│", "|")
    lines = [f"{at:>{margin}} {mark if at else side}{row}".rstrip() for at, row in zip(sides, rows, strict=True)]
    begin, end = str(first), str(first + x.size - 1)
    steps = begin if x.size == 1 else f"{begin}{end:>{max(columns - len(begin), len(end) + 1)}}"
    return [*lines, f"{' ' * (margin + 2)}{steps}", *_unlike(x, scale, first)]


def _unlike(x: Values, scale: Scale, first: int) -> list[str]:
    """What must be said of a curve besides."""
    lost = np.flatnonzero(~np.isfinite(x))
    said = ["a logarithmic scale"] if scale.logarithmic else []
    said += [f"{lost.size:,} not finite, the first at {first + int(lost[0])}"] if lost.size else []
    return [f"({'; '.join(said)})"] if said else []


def _drawn(x: Values, scale: Scale, columns: int, rows: int) -> list[str]:
    if characters("⣿", "") == "":
        return [_stars(line) for line in _dots(x, scale, columns, rows)]
    dots = _dots(x, scale, 2 * columns, 4 * rows)
    return [_braille(dots[4 * row : 4 * row + 4]) for row in range(rows)]


def _dots(x: Values, scale: Scale, columns: int, rows: int) -> npt.NDArray[np.bool_]:
    """Where there is a dot, from the top row down; each column is joined to the one before it."""
    dots = np.zeros((rows, columns), np.bool_)
    before: tuple[int, int] | None = None
    for column, part in enumerate(_columns(x, columns)):
        known = part[np.isfinite(part)]
        if not known.size:
            before = None
            continue
        low, high = (round(scale.height(float(y)) * (rows - 1)) for y in (known.min(), known.max()))
        start, stop = (low, high) if before is None else (min(low, before[1]), max(high, before[0]))
        dots[rows - 1 - stop : rows - start, column] = True
        before = low, high
    return dots


def _columns(x: Values, columns: int) -> Sequence[Values]:
    """The numbers of each column; of fewer numbers than columns what lies between them."""
    if x.size >= columns:
        return _parts(x, columns)
    places = np.linspace(0, x.size - 1, columns)
    with np.errstate(invalid="ignore", over="ignore"):
        return list(np.interp(places, np.arange(x.size), x)[:, None])


def _parts(values: npt.ArrayLike, count: int) -> list[Values]:
    x = np.asarray(values, np.float64)
    return np.array_split(x, min(count, x.size)) if x.size else []


def _braille(dots: npt.NDArray[np.bool_]) -> str:
    """A line of characters of 4 rows and 2 columns of dots."""
    weights = np.array(_DOTS)
    cells = dots.reshape(4, -1, 2).transpose(1, 0, 2)
    return "".join(chr(0x2800 + int((cell * weights).sum())) for cell in cells).replace("\u2800", " ")


def _stars(dots: npt.NDArray[np.bool_]) -> str:
    return "".join("*" if dot else " " for dot in dots.tolist())

"""Pictures of tensors: a cell for each element, coloured by its sign and size, as PNG for notebooks and in characters.

Zero is white, what is above it red, below it blue, to the limit of the colours. The last two axes are rows and columns
of a facet; the axes before them lay facets side by side and below each other, with grey between them. Of a large tensor
every k-th element of an axis is shown. For people to read: no part of the bit contract.
"""

import math
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from struct import pack

import numpy as np
import numpy.typing as npt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from ..base.arrays import Array
from .panels import panel
from .showing import cell, characters

Codes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Number = float | int | bool

_LEVELS = 100
"""Shades of either sign; a code is this for zero, up to this more above it, and less below it."""

_REACH = 3.0
"""The colours reach so many times the root mean square of the shown elements, where one is larger."""

_GAP = 2 * _LEVELS + 1

PIXELS = (480, 320)
"""Width and height of a picture in a notebook at most, where a cell has 4 pixels or more."""

_LINES = 24
"""Lines of a picture in a terminal, which is so high at least."""

_WHITE, _GREY, _BLACK = (247, 247, 247), (136, 136, 136), (0, 0, 0)
_BLUE, _RED = (22, 84, 160), (190, 16, 38)
_NAMES = {0: "blue", _LEVELS: "white", 2 * _LEVELS: "red"}


@dataclass(frozen=True, slots=True)
class Mark:
    """What is no shade: its colour, what is drawn on it where there is room, and what stands for it without colours."""

    what: str
    colour: tuple[int, int, int]
    ink: tuple[int, int, int]
    drawn: Callable[[Array, Array], Mask]
    """Of how far down and to the right a pixel is from the middle of a cell, 1 at its edge."""
    sign: str
    """What that looks like, in a legend."""
    letter: str


MARKS = (
    Mark("NaN", (255, 212, 0), _BLACK, lambda y, x: abs(abs(x) - abs(y)) < 0.3, "×", "N"),
    Mark("inf", (0, 158, 80), _BLACK, lambda y, x: (abs(x) < 0.25) | (abs(y) < 0.25), "+", "I"),
    Mark("-inf", (196, 90, 210), _BLACK, lambda y, x: (abs(y) < 0.25) | (x > 9), "-", "i"),
    Mark("above the colours", (80, 0, 16), _WHITE, lambda y, x: x * x + y * y < 0.3, "●", "A"),
    Mark("below the colours", (0, 16, 84), _WHITE, lambda y, x: x * x + y * y < 0.3, "●", "b"),
)
_FIRST_MARK, _FIRST_INK = _GAP + 1, _GAP + 1 + len(MARKS)


@dataclass(frozen=True, slots=True)
class Summary:
    """What is said of a tensor in a line; least, greatest and mean are of the finite elements."""

    shape: tuple[int, ...]
    dtype: str
    elements: int
    min: Number | None
    max: Number | None
    mean: float | None
    zeros: int
    nan: int
    infinite: int

    @classmethod
    def of(cls, array: Array) -> "Summary":
        """That of an array of floats, whole numbers or truth values.

        >>> print(Summary.of(np.array([[0.0, np.nan], [1.5, -0.5]])))
        (2, 2) float64: -0.5 to 1.5, mean 0.3333; 1 of 4 zero, 1 NaN
        """
        zeros, nan, known = array.size - int(np.count_nonzero(array)), 0, array
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            nan, known = int(np.isnan(array).sum()), array[np.isfinite(array)]
        low, high = (known.min().item(), known.max().item()) if known.size else (None, None)
        infinite = array.size - known.size - nan
        return cls(array.shape, str(array.dtype), array.size, low, high, _mean(known), zeros, nan, infinite)

    def __str__(self) -> str:
        head = f"{self.shape} {self.dtype}: "
        if not self.elements:
            return f"{head}no elements"
        if self.elements == 1:
            return f"{head}{cell(self.min) if self.min is not None else 'NaN' if self.nan else '1 infinite'}"
        lost = [f"{count:,} {what}" for count, what in ((self.nan, "NaN"), (self.infinite, "infinite")) if count]
        ends = (
            f"{cell(self.min)} to {cell(self.max)}, mean {cell(self.mean)}" if self.min is not None else "none finite"
        )
        said = lost or (["all finite"] if self.dtype.startswith("float") else [])
        return f"{head}{ends}; {', '.join([f'{self.zeros:,} of {self.elements:,} zero', *said])}"


def _mean(known: Array) -> float | None:
    """In float64; None of no elements."""
    if not known.size:
        return None
    with np.errstate(over="ignore"):
        mean = float(known.mean(dtype=np.float64))
        return mean if math.isfinite(mean) else float((known / known.size).sum())


@dataclass(frozen=True, slots=True)
class CellGrid:
    """The cells of a picture: `grid` has their codes; `steps` are the k of every axis, `limit` that of the colours."""

    grid: Codes
    steps: tuple[int, ...]
    limit: float

    @classmethod
    def of(cls, array: Array, columns: int, rows: int) -> "CellGrid":
        """Of at most so many columns and rows, of every k-th element of an axis where there are more.

        >>> CellGrid.of(np.zeros((64, 32, 3, 3)), 120, 80).steps
        (4, 2, 1, 1)
        """
        steps = _steps(array.shape, columns, rows)
        codes, limit = _coded(array[tuple(slice(None, None, k) for k in steps)])
        return cls(_laid_out(codes), steps, limit)

    @property
    def marks(self) -> list[tuple[Mark, int]]:
        """Those that are there, and how often."""
        counts = np.bincount(self.grid.ravel(), minlength=_FIRST_INK)[_FIRST_MARK:].tolist()
        return [(mark, count) for mark, count in zip(MARKS, counts, strict=True) if count]

    @property
    def ends(self) -> dict[int, str]:
        """The codes that a legend explains, from below zero to above it, and their numbers."""
        below = bool(((self.grid < _LEVELS) | (self.grid == _FIRST_MARK + 4)).any())
        above = bool(((self.grid > _LEVELS) & (self.grid < _GAP) | (self.grid == _FIRST_MARK + 3)).any())
        limit = cell(self.limit)
        return ({0: f"-{limit}"} if below else {}) | {_LEVELS: "0"} | ({2 * _LEVELS: limit} if above else {})

    @property
    def thinned(self) -> list[str]:
        """Which elements are shown, in a line, where they are not all."""
        shown = ", ".join(f"::{k}" if k > 1 else ":" for k in self.steps)
        return [f"shown: [{shown}], every k-th element"] if max(self.steps, default=1) > 1 else []


def _steps(shape: Sequence[int], columns: int, rows: int) -> tuple[int, ...]:
    """The k of each axis by which the picture fits; the axis that shows most is thinned first."""
    steps = [1] * len(shape)
    while True:
        kept = [-(-n // k) for n, k in zip(shape, steps, strict=True)]
        down, across = _extent(kept)
        last = len(shape) - 1
        wide = [i for i in range(len(shape)) if (last - i) % 2 == (0 if across > columns else 1) and kept[i] > 1]
        if (across <= columns and down <= rows) or not wide:
            return tuple(steps)
        most = max(wide, key=lambda i: kept[i])
        steps[most] += max(steps[most] // 8, 1)


def _extent(sizes: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of the picture of a tensor of these sizes."""
    extent = [1, 1]
    for i, n in enumerate(reversed(sizes)):
        gap = i // 2
        extent[1 - i % 2] = n if i < 2 else n * (extent[1 - i % 2] + gap) - gap
    return extent[0], extent[1]


def _laid_out(codes: Codes) -> Codes:
    """Facets side by side, then below each other, and so on, with a gap of one cell, then of two."""
    grid = codes.reshape((1,) * (2 - codes.ndim) + codes.shape)
    for i in range(2, codes.ndim):
        gap, axis = i // 2, grid.ndim - 1 - i % 2
        room = [(0, gap if each == axis else 0) for each in range(grid.ndim)]
        padded = np.moveaxis(np.pad(grid, room, constant_values=_GAP), -3, axis - 1)
        sizes = [*padded.shape[: axis - 1], padded.shape[axis - 1] * padded.shape[axis], *padded.shape[axis + 1 :]]
        joined = padded.reshape(sizes)
        grid = joined[..., :-gap] if i % 2 == 0 else joined[..., :-gap, :]
    return grid


def _coded(array: Array) -> tuple[Codes, float]:
    """A code for each element, and the limit of the colours."""
    x = array.astype(np.float64)
    known = np.isfinite(x)
    largest = float(np.abs(x[known]).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        part = x / (largest or 1.0)
    reach = min(_REACH * math.sqrt(float(np.mean(part[known] ** 2))), 1.0) if largest else 1.0
    shades = np.ceil(np.abs(np.where(known, part, 0.0)) / reach * _LEVELS).clip(1, _LEVELS)  # only zero is white
    codes = (_LEVELS + np.where(known, np.sign(x), 0.0) * shades).astype(np.uint8)
    special = (np.isnan(x), x == np.inf, x == -np.inf, known & (part > reach), known & (part < -reach))
    for i, mask in enumerate(special):
        codes[mask] = _FIRST_MARK + i
    return codes, largest * reach


# ------------------------------------------------------------------ as an image


def _palette() -> Codes:
    """Of each code its red, green and blue; the codes of ink follow those of marks."""
    share = 0.06 + 0.94 * np.arange(1, _LEVELS + 1)[:, None] / _LEVELS
    sides = [np.array(_WHITE) + share * (np.array(end) - _WHITE) for end in (_BLUE, _RED)]
    marks = np.array([mark.colour for mark in MARKS] + [mark.ink for mark in MARKS])
    return np.concatenate([sides[0][::-1], [_WHITE], sides[1], [_GREY], marks]).round().astype(np.uint8)


PALETTE = _palette()


def _pixels(grid: Codes) -> Codes:
    """CellGrid as squares of pixels; few rows are higher, and marks are drawn where there is room."""
    rows, columns = grid.shape
    side = max(1, min(16, PIXELS[0] // columns, PIXELS[1] // rows))
    height = max(side, 12) if rows <= 2 else side
    made = grid.repeat(height, 0).repeat(side, 1)
    if side < 5:
        return made
    y, x = (2 * (np.arange(n) + 0.5) / n - 1 for n in (height, side))
    for i, mark in enumerate(MARKS):
        inked = np.tile(mark.drawn(y[:, None], x[None, :]), grid.shape) & (made == _FIRST_MARK + i)
        made[inked] = _FIRST_INK + i
    return made


def png(pixels: Codes) -> bytes:
    """A file of an image whose pixels are codes of `PALETTE`."""
    height, width = pixels.shape
    upper = np.concatenate([np.zeros((1, width), np.uint8), pixels[:-1]])
    lines = np.concatenate([np.full((height, 1), 2, np.uint8), pixels - upper], axis=1)  # 2: what is above is taken off
    parts = {
        b"IHDR": pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0),
        b"PLTE": PALETTE.tobytes(),
        b"IDAT": zlib.compress(lines.tobytes(), 9),
        b"IEND": b"",
    }
    chunks = (pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data)) for kind, data in parts.items())
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _image(grid: Codes, said: str) -> str:
    data = b64encode(png(_pixels(grid))).decode()
    style = "image-rendering:pixelated;border:1px solid #888;max-width:100%;margin:0.3em 0"
    return f'<img src="data:image/png;base64,{data}" alt="{escape(said)}" style="{style}" />'


# ------------------------------------------------------------------ of a tensor


class Picture:
    """A picture of a tensor with a line that says what is in it, for notebooks and for rich consoles."""

    def __init__(self, array: Array) -> None:
        self._array, self.summary = array, Summary.of(array)

    def to_html(self, title: str = "") -> str:
        """HTML without scripts, of at most 60 kB."""
        lines = [str(self.summary)]
        shown = ""
        if self._array.size > 1:
            cells = CellGrid.of(self._array, PIXELS[0] // 4, PIXELS[1] // 4)
            shown = f"<div>{_image(cells.grid, lines[0])}</div>"
            colours = [f"{_NAMES[code]} {text}" for code, text in cells.ends.items()]
            colours += [f"{mark.sign} {count:,} {mark.what}" for mark, count in cells.marks]
            lines += [", ".join(colours), *cells.thinned]
        return panel(title, shown, *(f"<div>{escape(line)}</div>" for line in lines))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(str(self.summary))
        if self._array.size > 1:
            coloured = console.color_system is not None and not console.no_color and characters("▀", "")
            yield from (_in_blocks if coloured else _in_letters)(self._array, options.max_width)


def _in_blocks(array: Array, width: int) -> Iterator[Text]:
    """Two cells in a character, one above the other."""
    cells = CellGrid.of(array, width, 2 * _LINES)
    rows, columns = cells.grid.shape
    side = max(1, min(4, width // columns, 2 * _LINES // rows))
    grid = cells.grid.repeat(side, 0).repeat(side, 1)
    grid = np.pad(grid, ((0, len(grid) % 2), (0, 0)), constant_values=_GAP)
    for upper, lower in zip(grid[::2].tolist(), grid[1::2].tolist(), strict=True):
        yield _assembled(zip(upper, lower, strict=True))
    explained = cells.ends | {_FIRST_MARK + MARKS.index(mark): f"{n:,} {mark.what}" for mark, n in cells.marks}
    yield Text(", ").join([_swatch(code, text) for code, text in explained.items()])
    yield from map(Text, cells.thinned)


def _assembled(pairs: Iterator[tuple[int, int]]) -> Text:
    line = Text(no_wrap=True)
    for (upper, lower), run in groupby(pairs):
        count = len(list(run))
        if upper == lower == _GAP:
            line.append(" " * count)
        elif upper == _GAP:
            line.append("▄" * count, _colour(lower))
        else:
            line.append("▀" * count, _colour(upper) + ("" if lower == _GAP else f" on {_colour(lower)}"))
    return line


def _swatch(code: int, text: str) -> Text:
    return Text().append("  ", f"on {_colour(code)}").append(f" {text}")


def _colour(code: int) -> str:
    red, green, blue = PALETTE[code].tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


def _in_letters(array: Array, width: int) -> Iterator[Text]:
    """A cell in two characters: the heavier, the farther from zero."""
    above, below, zero = characters("░▒▓█", ".oO@"), characters("-~=≡", "-~=%"), characters("·", "0")
    cells = CellGrid.of(array, max(width // 2, 1), _LINES)
    shades = [side[min(i * 4 // _LEVELS, 3)] for side in (below, above) for i in range(_LEVELS)]
    letters = [*shades[:_LEVELS][::-1], zero, *shades[_LEVELS:], " ", *(mark.letter for mark in MARKS)]
    rows: list[list[int]] = cells.grid.tolist()
    for row in rows:
        yield Text("".join(letters[code] * 2 for code in row).rstrip(), no_wrap=True)
    said = {0: f"{below} to", _LEVELS: zero, 2 * _LEVELS: f"{above} to"}
    legend = [f"{said[code]} {text}" for code, text in cells.ends.items()]
    legend += [f"{mark.letter} {count:,} {mark.what}" for mark, count in cells.marks]
    yield from map(Text, [", ".join(legend), *cells.thinned])

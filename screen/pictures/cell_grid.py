"""Which cell stands for which element of a tensor, and its code."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...base.arrays import Array
from ..showing import cell
from .codes import FIRST_INK, FIRST_MARK, GAP, LEVELS, MARKS, CellMark, Codes

_NAMES = {0: "blue", LEVELS: "white", 2 * LEVELS: "red"}
_REACH = 3.0
"""The colours reach so many times the root mean square of the shown elements, where one is larger."""


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
    def marks(self) -> list[tuple[CellMark, int]]:
        """Those that are there, and how often."""
        counts = np.bincount(self.grid.ravel(), minlength=FIRST_INK)[FIRST_MARK:].tolist()
        return [(mark, count) for mark, count in zip(MARKS, counts, strict=True) if count]

    @property
    def ends(self) -> dict[int, str]:
        """The codes that a legend explains, from below zero to above it, and their numbers."""
        below = bool(((self.grid < LEVELS) | (self.grid == FIRST_MARK + 4)).any())
        above = bool(((self.grid > LEVELS) & (self.grid < GAP) | (self.grid == FIRST_MARK + 3)).any())
        limit = cell(self.limit)
        return ({0: f"-{limit}"} if below else {}) | {LEVELS: "0"} | ({2 * LEVELS: limit} if above else {})

    @property
    def legend(self) -> list[str]:
        """Lines that explain the colours, with the marks that are there, and which elements are shown."""
        colours = [f"{_NAMES[code]} {text}" for code, text in self.ends.items()]
        colours += [f"{mark.sign} {count:,} {mark.what}" for mark, count in self.marks]
        return [", ".join(colours), *self.thinned]

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
        padded = np.moveaxis(np.pad(grid, room, constant_values=GAP), -3, axis - 1)
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
    shades = np.ceil(np.abs(np.where(known, part, 0.0)) / reach * LEVELS).clip(1, LEVELS)  # only zero is white
    codes = (LEVELS + np.where(known, np.sign(x), 0.0) * shades).astype(np.uint8)
    special = (np.isnan(x), x == np.inf, x == -np.inf, known & (part > reach), known & (part < -reach))
    for i, mask in enumerate(special):
        codes[mask] = FIRST_MARK + i
    return codes, largest * reach

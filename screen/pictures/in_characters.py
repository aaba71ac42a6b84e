"""Cells in the characters of a terminal: in colours two in one, without them letters."""

from collections.abc import Iterator
from itertools import groupby

import numpy as np
from rich.text import Text

from ...base.arrays import Array
from ..showing import characters
from .cell_grid import CellGrid
from .codes import FIRST_MARK, GAP, LEVELS, MARKS, PALETTE

LINES = 24
"""Lines of a picture in a terminal, which is so high at least."""


def in_blocks(array: Array, width: int) -> Iterator[Text]:
    """Two cells in a character, one above the other."""
    cells = CellGrid.of(array, width, 2 * LINES)
    rows, columns = cells.grid.shape
    side = max(1, min(4, width // columns, 2 * LINES // rows))
    grid = cells.grid.repeat(side, 0).repeat(side, 1)
    grid = np.pad(grid, ((0, len(grid) % 2), (0, 0)), constant_values=GAP)
    for upper, lower in zip(grid[::2].tolist(), grid[1::2].tolist(), strict=True):
        yield _assembled(zip(upper, lower, strict=True))
    explained = cells.ends | {FIRST_MARK + MARKS.index(mark): f"{n:,} {mark.what}" for mark, n in cells.marks}
    yield Text(", ").join([_swatch(code, text) for code, text in explained.items()])
    yield from map(Text, cells.thinned)


def _assembled(pairs: Iterator[tuple[int, int]]) -> Text:
    line = Text(no_wrap=True)
    for (upper, lower), run in groupby(pairs):
        count = len(list(run))
        if upper == lower == GAP:
            line.append(" " * count)
        elif upper == GAP:
            line.append("▄" * count, _colour(lower))
        else:
            line.append("▀" * count, _colour(upper) + ("" if lower == GAP else f" on {_colour(lower)}"))
    return line


def _swatch(code: int, text: str) -> Text:
    return Text().append("  ", f"on {_colour(code)}").append(f" {text}")


def _colour(code: int) -> str:
    red, green, blue = PALETTE[code].tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


def in_letters(array: Array, width: int) -> Iterator[Text]:
    """A cell in two characters: the heavier, the farther from zero."""
    above, below, zero = characters("░▒▓█", ".oO@"), characters("-~=≡", "-~=%"), characters("·", "0")
    cells = CellGrid.of(array, max(width // 2, 1), LINES)
    shades = [side[min(i * 4 // LEVELS, 3)] for side in (below, above) for i in range(LEVELS)]
    letters = [*shades[:LEVELS][::-1], zero, *shades[LEVELS:], " ", *(mark.letter for mark in MARKS)]
    rows: list[list[int]] = cells.grid.tolist()
    for row in rows:
        yield Text("".join(letters[code] * 2 for code in row).rstrip(), no_wrap=True)
    said = {0: f"{below} to", LEVELS: zero, 2 * LEVELS: f"{above} to"}
    legend = [f"{said[code]} {text}" for code, text in cells.ends.items()]
    legend += [f"{mark.letter} {count:,} {mark.what}" for mark, count in cells.marks]
    yield from map(Text, [", ".join(legend), *cells.thinned])

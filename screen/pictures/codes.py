"""The codes of cells, a byte each, and their colours."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array

Codes: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]

LEVELS = 100
"""Shades of either sign; a code is this for zero, up to this more above it, and less below it."""

GAP = 2 * LEVELS + 1
"""The code of what lies between facets."""

_WHITE, _GREY, _BLACK = (247, 247, 247), (136, 136, 136), (0, 0, 0)
_BLUE, _RED = (22, 84, 160), (190, 16, 38)


@dataclass(frozen=True, slots=True)
class CellMark:
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
    CellMark("NaN", (255, 212, 0), _BLACK, lambda y, x: abs(abs(x) - abs(y)) < 0.3, "×", "N"),
    CellMark("inf", (0, 158, 80), _BLACK, lambda y, x: (abs(x) < 0.25) | (abs(y) < 0.25), "+", "I"),
    CellMark("-inf", (196, 90, 210), _BLACK, lambda y, x: (abs(y) < 0.25) | (x > 9), "-", "i"),
    CellMark("above the colours", (80, 0, 16), _WHITE, lambda y, x: x * x + y * y < 0.3, "●", "A"),
    CellMark("below the colours", (0, 16, 84), _WHITE, lambda y, x: x * x + y * y < 0.3, "●", "b"),
)
FIRST_MARK, FIRST_INK = GAP + 1, GAP + 1 + len(MARKS)


def _palette() -> Codes:
    """Of each code its red, green and blue; the codes of ink follow those of marks."""
    share = 0.06 + 0.94 * np.arange(1, LEVELS + 1)[:, None] / LEVELS
    sides = [np.array(_WHITE) + share * (np.array(end) - _WHITE) for end in (_BLUE, _RED)]
    marks = np.array([mark.colour for mark in MARKS] + [mark.ink for mark in MARKS])
    return np.concatenate([sides[0][::-1], [_WHITE], sides[1], [_GREY], marks]).round().astype(np.uint8)


PALETTE = _palette()

"""The digits that a model reads wrongly, drawn in characters."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from ...base.arrays import Array
from ...screen.showing import characters

SIDE = 8
"""Pixels of a digit, each way."""

BESIDE = 4
"""Digits in a line: two characters for a pixel, some columns between digits, within 80."""

_SHADES = " ░▒▓█"
_PLAIN = " .:*#"


@dataclass(frozen=True, slots=True)
class Misread:
    """A digit of the test set: its place, what it is, what it was read as, and how sure the model was of that."""

    index: int
    label: int
    read: int
    probability: float

    def __str__(self) -> str:
        return f"{self.label} read as {self.read}, {self.probability:.0%}"


def misread(outputs: Array, labels: Array) -> list[Misread]:
    """Where the largest output of a model is not that of the label; what it was surest of comes first."""
    x = outputs.astype(np.float64)
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    shares = weights / weights.sum(axis=1, keepdims=True)
    wrong = np.flatnonzero(outputs.argmax(axis=1) != labels)
    found = [
        Misread(int(i), int(labels[i]), int(outputs[i].argmax()), float(shares[i, outputs[i].argmax()])) for i in wrong
    ]
    return sorted(found, key=lambda digit: -digit.probability)


def drawn_digits(found: Sequence[Misread], images: Any) -> list[str]:
    """Lines of digits beside each other, each under what it was read as."""
    blocks = [[str(digit), *_drawn(np.asarray(images[digit.index]))] for digit in found]
    rows = zip_longest(*blocks, fillvalue="")
    return ["   ".join(f"{part:<{2 * SIDE + 1}}" for part in row).rstrip() for row in rows]


def _drawn(image: Array) -> list[str]:
    shades = characters(_SHADES, _PLAIN)
    x = image.reshape(SIDE, SIDE).astype(np.float64)
    levels = np.rint(x / (x.max() or 1.0) * (len(shades) - 1)).astype(int)
    return ["".join(2 * shades[level] for level in row) for row in levels.tolist()]

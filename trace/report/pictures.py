"""Pictures of the params of a run at some steps: the value before the step, the gradient, what the step added."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Array
from ...screen.pictures.cell_grid import CellGrid
from ...screen.pictures.image import drawn
from ...screen.pictures.summary import Summary
from ..v2.format.constants import TensorRole
from ..v2.read.reader import TraceReader
from .chosen import evenly
from .packing import Pack
from .walk import Walked

MOST_CELLS = 600_000
"""Cells of all pictures of a run, each one or two bytes of the page."""

MOST_PICTURES = 1_200
"""Pictures of a run, each with some words."""

MOST_STEPS = 12
"""Steps of which there are pictures, beside the special ones."""

MOST_SPECIAL = 4
"""Special steps of which there are pictures."""

LARGEST = (120, 80)
"""Columns and rows of a picture, at most."""

KINDS = 3
"""Pictures of a param at a step: value, gradient, update."""


class Pictured(NamedTuple):
    """Of which steps and of how many params there are pictures, and their columns and rows at most."""

    steps: tuple[int, ...]
    params: int
    size: tuple[int, int]


def pictured(steps: int, elements: Sequence[int], special: Iterable[int] = ()) -> Pictured:
    """As many steps as a page has room for, the first and the last among them; then pictures become smaller.

    >>> pictured(1000, [64 * 64, 64], special=[500]).steps
    (0, 91, 182, 272, 363, 454, 500, 545, 636, 727, 817, 908, 999)
    >>> pictured(1000, [1024 * 1024] * 200)
    Pictured(steps=(0, 999), params=200, size=(27, 18))
    """
    params = min(len(elements), MOST_PICTURES // (2 * KINDS))
    cells = KINDS * sum(min(n, math.prod(LARGEST)) for n in elements[:params])
    room = min(MOST_CELLS // max(cells, 1), MOST_PICTURES // max(KINDS * params, 1))
    marked = [step for step in dict.fromkeys(special) if 0 <= step < steps][: min(max(room - 2, 1), MOST_SPECIAL)]
    kept = evenly(steps, min(max(room - len(marked), 2), MOST_STEPS)).union(marked)
    share = 1.0
    if cells * len(kept) > MOST_CELLS:
        share = math.sqrt(MOST_CELLS / (KINDS * params * len(kept)) / math.prod(LARGEST))
    size = tuple(max(int(n * min(share, 1.0)), 1) for n in LARGEST)
    return Pictured(tuple(sorted(kept)), params, (size[0], size[1]))


class TensorPictures:
    """Collects the pictures, step by step; a picture that is the same at several steps is kept once."""

    def __init__(self, trace: TraceReader, steps: int, special: Iterable[int]) -> None:
        specs = [spec for spec in trace.schema.tensors if spec.role is TensorRole.PARAM]
        self._kept = pictured(steps, [math.prod(spec.shape) for spec in specs], special)
        self._params = [spec.name for spec in specs[: self._kept.params]]
        self._files = dict[bytes, int]()
        self._rows = dict[int, list[Any]]()

    def add(self, walked: Walked) -> None:
        """Take a step."""
        if walked.view.step not in self._kept.steps:
            return
        row = [[self._picture(array) for array in _arrays(walked, name)] for name in self._params]
        if any(picture for of_param in row for picture in of_param):
            self._rows[walked.view.step] = row

    def _picture(self, array: Array | None) -> list[Any] | None:
        """The number of its file, or None where a line tells all; what is said of it; its legend; its numbers."""
        if array is None:
            return None
        of, file, legend = Summary.of(array), None, list[str]()
        if array.size > 1:
            cells = CellGrid.of(array, *self._kept.size)
            file, legend = self._files.setdefault(drawn(cells.grid), len(self._files)), cells.legend
        numbers = [None if x is None else float(f"{x:.6g}") for x in (of.min, of.max, of.mean)]
        return [file, str(of), legend, *numbers, of.zeros, of.nan, of.infinite]

    def packed(self, pack: Pack) -> dict[str, Any]:
        """All of them as the page has them: by step and param, and of these by kind."""
        return {
            "params": self._params,
            "steps": list(self._rows),
            "rows": list(self._rows.values()),
            "files": [pack.file(data) for data in self._files],
        }


def _arrays(walked: Walked, name: str) -> list[Array | None]:
    """Value, gradient and update; None for what is not known."""
    before, update = walked.before.get(name), None
    if before is not None and name in walked.after:
        with np.errstate(invalid="ignore", over="ignore"):
            update = np.asarray(walked.after[name] - before)
    return [before, walked.grads.get(name), update]

"""Sizes of the memory in which weight gradients of small groups are computed, decided from shapes."""

from collections.abc import Sequence
from typing import NamedTuple

from ....numerics.simd.codegen import CACHE_LINE
from .axis import PlanAxis

FEWEST_GROUPS, MOST_OUTPUTS = 2, 4
"""Groups, and outputs of each, for which lanes that are outputs of several groups pay."""

MOST_LANES = CACHE_LINE // 4
"""Lanes of the widest vector, and so the vectors that a square of them writes behind its end at most."""


class SmallGroups(NamedTuple):
    """Bytes of an image and of a panel of cotangents; the image's row in vectors; rows of results of a strip.

    Then the first row and column that a tap meets for the first result, and how many rows the taps of one result span.
    ``image`` is 0 where groups are not small.
    """

    image: int
    panel: int
    width: int
    strip: int
    top: int
    left: int
    span: int

    def taps(self, first: PlanAxis, last: PlanAxis) -> list[int]:
        """For each tap, in vectors, where it lies in an image for the first result."""
        rows, columns = ([start for _, start in axis.taps] for axis in (first, last))
        return [(r - self.top) * self.width + c - self.left for r in rows for c in columns] if self.image else []


NONE = SmallGroups(0, 0, 0, 0, 0, 0, 0)


def small_groups(first: PlanAxis, last: PlanAxis, most: int) -> SmallGroups:
    """Of two axes, for images of at most so many bytes, if one row does not take more."""
    rows, columns = _starts(first), _starts(last)
    width, span = (max(last.results, 1) - 1) * last.step + columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1
    results = max(first.results, 1)
    fitting = max((most // (width * CACHE_LINE) - span) // first.step + 1, 1)
    strip = -(-results // -(-results // fitting))
    height = (strip - 1) * first.step + span
    image, panel = height * width, strip * max(last.results, 1)
    return SmallGroups(_bytes(image), _bytes(panel), width, strip, rows[0], columns[0], span)


def _starts(axis: PlanAxis) -> Sequence[int]:
    return sorted(start for _, start in axis.taps)


def _bytes(vectors: int) -> int:
    """Bytes of vectors and of what a square of them writes behind them."""
    return (vectors + MOST_LANES) * CACHE_LINE

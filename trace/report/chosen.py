"""Which steps a page shows, and how closely: all of a short run, of a long one as many as a browser opens at once."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

MOST_MAGNITUDES = 2_000_000
"""Steps times params of which the norms of gradients and updates are kept."""

MOST_DETAILS = 100_000
"""Steps times tensors of which all figures are kept."""

MOST_HISTOGRAMS = 12
"""Steps of which the histograms of weights and gradients are kept."""


class Chosen(NamedTuple):
    """Numbers of steps, each list in their order; each is part of the one before it."""

    columns: tuple[int, ...]
    """Whose norms are kept: columns of the heat map."""
    details: tuple[int, ...]
    """Of whose tensors the page has every figure."""
    histograms: tuple[int, ...]


def chosen(steps: int, params: int, tensors: int, special: Iterable[int] = ()) -> Chosen:
    """Evenly apart, the first and the last among them; and ``special`` ones, such as that where two runs part.

    >>> chosen(5, 2, 6)
    Chosen(columns=(0, 1, 2, 3, 4), details=(0, 1, 2, 3, 4), histograms=(0, 1, 2, 3, 4))
    >>> many = chosen(10_000, 200, 600, special=[77])
    >>> len(many.columns), len(many.details), 77 in many.details
    (10000, 167, True)
    """
    marked = {step for step in special if 0 <= step < steps}
    columns = marked | evenly(steps, max(MOST_MAGNITUDES // max(params, 1), 2))
    details = marked | evenly(steps, max(MOST_DETAILS // max(tensors, 1), 2))
    histograms = evenly(steps, MOST_HISTOGRAMS)
    lists = (columns | details | histograms, details | histograms, histograms)
    return Chosen(*(tuple(sorted(numbers)) for numbers in lists))


def evenly(steps: int, most: int) -> set[int]:
    """At most so many of the steps.

    >>> sorted(evenly(10, 4))
    [0, 3, 6, 9]
    """
    if steps <= most:
        return set(range(steps))
    return {round(float(place)) for place in np.linspace(0, steps - 1, most)}

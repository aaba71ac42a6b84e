"""What conditions compute with: functions by name, each of one thing, by numpy in float64."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.arrays import Array


@dataclass(frozen=True)
class Function:
    """A function of a condition: of numbers or of truths, and so is what it gives."""

    compute: Callable[[Any], Any]
    of_truths: bool = False
    gives_truths: bool = False


def _of_some(reduce: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A reduction that is NaN where there are no elements."""
    return lambda x: reduce(x) if np.size(x) else np.float64(np.nan)


def _norm(x: Array) -> Any:
    """The 2-norm: scaled by the largest element, so that no square overflows or vanishes."""
    largest = np.max(np.abs(x), initial=0.0)
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * np.sqrt(np.sum(np.square(x / largest)))


FUNCTIONS: dict[str, Function] = {
    "absmax": Function(_of_some(lambda x: np.max(np.abs(x)))),
    "max": Function(_of_some(np.max)),
    "min": Function(_of_some(np.min)),
    "mean": Function(_of_some(np.mean)),
    "norm": Function(_norm),
    "zeros": Function(lambda x: np.float64(np.size(x) - np.count_nonzero(x))),
    "abs": Function(np.abs),
    "isnan": Function(np.isnan, gives_truths=True),
    "isinf": Function(np.isinf, gives_truths=True),
    "isfinite": Function(np.isfinite, gives_truths=True),
    "any": Function(np.any, of_truths=True, gives_truths=True),
    "all": Function(np.all, of_truths=True, gives_truths=True),
}
"""By name. Reductions give one number or truth, the others one for each element; max, min and mean of no element, and
of elements with a NaN, are NaN, which no comparison but ``!=`` holds of."""

"""The recorded gradients of a run, parameter by parameter: how large they became, and what is wrong with them."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..json_value import Plain
from ..v2.errors import InvalidTraceError, NotRecordedError
from ..v2.read.reader import TraceReader

LOOKED_AT = 32
"""Steps of which the gradients are read, evenly apart, the last among them."""


@dataclass(frozen=True, slots=True)
class GradientFigures(Plain):
    """What the gradients of a parameter were at the steps that were looked at.

    `largest` is the greatest magnitude of a finite element, at step `step`, and `last` that at the last step. `zeros`
    is the share of elements that are zero at the last step, and `nonfinite` the number of steps with an infinity or a
    NaN.
    """

    name: str
    largest: float
    step: int
    last: float
    zeros: float
    nonfinite: int

    @property
    def remark(self) -> str:
        """What is wrong with it; empty if nothing is."""
        if self.nonfinite:
            return f"not finite at {self.nonfinite} steps" if self.nonfinite > 1 else "not finite at 1 step"
        return "dead" if self.zeros == 1.0 else ""


def looked_at(steps: int) -> list[int]:
    """The steps of which gradients are read.

    >>> looked_at(3), len(looked_at(1000)), looked_at(1000)[-1]
    ([0, 1, 2], 32, 999)
    """
    return sorted({int(step) for step in np.linspace(0, steps - 1, min(steps, LOOKED_AT))}) if steps else []


def gradient_figures(trace: TraceReader) -> tuple[list[GradientFigures], int]:
    """The worst first - those with infinities or NaNs, then by their largest element - and how many steps were seen.

    None where no gradients are recorded; a step that is damaged or missing is left out.
    """
    if not trace.header.mode.has_gradients:
        return [], 0
    found: dict[str, list[tuple[int, float, float, bool]]] = {}
    count = 0
    for step in looked_at(len(trace)):
        with suppress(InvalidTraceError, NotRecordedError):  # what is wrong with the file, `validate` says
            for name, gradient in trace.gradients(step).items():
                found.setdefault(name, []).append((step, *_figures(gradient)))
            count += 1
    rows = [_row(name, seen) for name, seen in found.items()]
    return sorted(rows, key=lambda row: (-row.nonfinite, -row.largest)), count


def _figures(gradient: Any) -> tuple[float, float, bool]:
    """The greatest finite magnitude, the share of zeros, and whether every element is finite."""
    finite = np.isfinite(gradient)
    largest = float(np.abs(gradient[finite]).max(initial=0.0))
    zeros = 1.0 - np.count_nonzero(gradient) / gradient.size if gradient.size else 0.0
    return largest, zeros, bool(finite.all())


def _row(name: str, seen: list[tuple[int, float, float, bool]]) -> GradientFigures:
    step, largest, _, _ = max(seen, key=lambda entry: entry[1])
    _, last, zeros, _ = seen[-1]
    return GradientFigures(name, largest, step, last, zeros, sum(not finite for *_, finite in seen))

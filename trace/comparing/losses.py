"""The losses of two runs side by side: a few of them, as a curve of characters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..v2.read.reader import Trace
from .tensors import plain

WIDTH = 40
BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.-=+*%#"


@dataclass(frozen=True, slots=True)
class LossCurves:
    """At most 40 steps, evenly apart, and both losses there; None where a trace has ended."""

    steps: tuple[int, ...]
    a: tuple[float | None, ...]
    b: tuple[float | None, ...]
    last_common: float | None = None
    """The loss before the first different step."""
    first_different: tuple[float | None, float | None] = (None, None)
    """Both losses at the first different step."""

    def lines(self, step: int | None, characters: str) -> list[str]:
        """For a screen: both curves on one scale, and what the losses were around a step."""
        if not self.steps:
            return []
        low, high = _range((*self.a, *self.b))
        lines = [f"loss of steps {self.steps[0]} to {self.steps[-1]}, on a scale from {low:.4g} to {high:.4g}:"]
        lines += [f"  {side} {_drawn(curve, low, high, characters)}" for side, curve in (("a", self.a), ("b", self.b))]
        return lines if step is None else [*lines, self._marked(step)]

    def _marked(self, step: int) -> str:
        column = sum(k <= step for k in self.steps) - 1
        x, y = (_number(loss) for loss in self.first_different)
        before = "" if self.last_common is None else f"; before {_number(self.last_common)} in both"
        return f"    {' ' * column}^ step {step}: {f'{x} in both' if x == y else f'a {x}, b {y}'}{before}"

    def to_dict(self) -> dict[str, Any]:
        """Plain types."""
        return {
            "steps": list(self.steps),
            "a": [plain(x) for x in self.a],
            "b": [plain(x) for x in self.b],
            "last_common": plain(self.last_common),
            "first_different": [plain(x) for x in self.first_different],
        }


def loss_curves(a: Trace, b: Trace, step: int | None) -> LossCurves:
    """Read at most 40 losses of each trace, and those around a step."""
    length = max(len(a), len(b))
    count = min(length, WIDTH)
    steps = tuple(round(i * (length - 1) / max(count - 1, 1)) for i in range(count))
    curves = [tuple(_loss(trace, k) for k in steps) for trace in (a, b)]
    before = None if not step else _loss(a, step - 1)
    first = (None, None) if step is None else (_loss(a, step), _loss(b, step))
    return LossCurves(steps, curves[0], curves[1], before, first)


def _loss(trace: Trace, step: int) -> float | None:
    return float(trace[step].loss) if step < len(trace) else None


def _range(losses: Sequence[float | None]) -> tuple[float, float]:
    known = [x for x in losses if x is not None and math.isfinite(x)]
    return min(known, default=math.inf), max(known, default=-math.inf)


def _drawn(losses: Sequence[float | None], low: float, high: float, characters: str) -> str:
    """A character for each loss; a space where the trace has ended, "!" for what is not finite."""
    top = len(characters) - 1
    drawn: list[str] = []
    for loss in losses:
        if loss is None:
            drawn.append(" ")
        elif not math.isfinite(loss):
            drawn.append("!")
        else:
            drawn.append(characters[round((loss / 2 - low / 2) / (high / 2 - low / 2 or 1) * top)])
    return "".join(drawn)


def _number(loss: float | None) -> str:
    return "ended" if loss is None else f"{loss:.9g}"

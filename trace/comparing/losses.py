"""The losses of two runs side by side: a few of them, as a curve of characters."""

from dataclasses import dataclass

from ...screen.curves import Scale
from ..json_value import Plain
from ..v2.read.reader import TraceReader

WIDTH = 40
"""Characters of a curve."""


@dataclass(frozen=True, slots=True)
class LossCurves(Plain):
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
        scale = Scale.of((*self.a, *self.b))
        kind = "a logarithmic scale" if scale.logarithmic else "a scale"
        span = f"from {scale.low:.4g} to {scale.high:.4g}"
        lines = [f"loss of steps {self.steps[0]} to {self.steps[-1]}, on {kind} {span}:"]
        for side, losses in (("a", self.a), ("b", self.b)):
            lines.append(f"  {side} {''.join(scale.character(x, characters) for x in losses)}")
        if step is None:
            return lines
        column = sum(k <= step for k in self.steps) - 1
        return [*lines, f"    {' ' * column}^ {self.around(step)}"]

    def around(self, step: int) -> str:
        """What the losses were at the first different step, and before it."""
        x, y = self.first_different
        digits = 17 if x != y and _number(x, 9) == _number(y, 9) else 9
        now = f"a {_number(x, digits)}, b {_number(y, digits)}" if x != y else f"{_number(x, 9)} in both"
        before = "" if self.last_common is None else f"; before {_number(self.last_common, 9)} in both"
        return f"step {step}: {now}{before}"


def loss_curves(a: TraceReader, b: TraceReader, step: int | None, first: int = 0) -> LossCurves:
    """Read at most 40 losses of each trace, and those around a step.

    ``first`` is the step of ``a`` that step 0 of ``b`` is; before it the losses of ``a`` are those of both.
    """
    length = max(len(a), first + len(b))
    count = min(length, WIDTH)
    steps = tuple(round(i * (length - 1) / max(count - 1, 1)) for i in range(count))

    def of_b(k: int) -> float | None:
        return _loss(a, k) if k < first else _loss(b, k - first)

    before = None if not step else _loss(a, step - 1)
    parted = (None, None) if step is None else (_loss(a, step), of_b(step))
    return LossCurves(steps, tuple(_loss(a, k) for k in steps), tuple(map(of_b, steps)), before, parted)


def _loss(trace: TraceReader, step: int) -> float | None:
    return float(trace[step].loss) if step < len(trace) else None


def _number(loss: float | None, digits: int) -> str:
    return "ended" if loss is None else f"{loss:.{digits}g}"

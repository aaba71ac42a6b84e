"""The losses of two runs as a picture: lines that stretch with the page, and their scale in words beside them."""

import math
from collections.abc import Sequence
from itertools import groupby

from ....screen.curves import Scale
from ...comparing.losses import LossCurves
from .markup import element, table

_PICTURE = '<svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">'


def chart(losses: LossCurves, step: int | None) -> str:
    """A figure, and the same numbers as a table."""
    if not losses.steps:
        return ""
    scale, steps = Scale.of((*losses.a, *losses.b)), losses.steps
    lines = [_line(side, scale, steps, numbers) for side, numbers in (("a", losses.a), ("b", losses.b))]
    at = "" if step is None else f'<path class="at" d="M{_across(steps, step)} 0V100"/>'
    kind = "logarithmic scale" if scale.logarithmic else "scale"
    parts = [
        element("span", f"{scale.high:.4g}", "high"),
        f"{_PICTURE}{at}{''.join(lines)}</svg>",
        element("span", f"{scale.low:.4g}", "low"),
        element("span", f"step {steps[0]}", "from"),
        element("span", f"step {steps[-1]}", "to"),
    ]
    key = '<span class="key a">a</span> <span class="key b">b</span>'
    mark = "" if step is None else f"; the upright line: {losses.around(step)}"
    broken = any(x is not None and not math.isfinite(x) for x in (*losses.a, *losses.b))
    more = "; a line breaks where the loss is not finite" if broken else ""
    said = element("span", f"{kind} from {scale.low:.4g} to {scale.high:.4g}{mark}{more}")
    rows = [(str(k), _number(x), _number(y)) for k, x, y in zip(steps, losses.a, losses.b, strict=True)]
    numbers = f"<details><summary>as numbers</summary>{table(('step', 'a', 'b'), rows)}</details>"
    return f'<figure><div class="chart">{"".join(parts)}</div><figcaption>{key} {said}</figcaption>{numbers}</figure>'


def _line(side: str, scale: Scale, steps: Sequence[int], losses: Sequence[float | None]) -> str:
    """One run: a stroke for each stretch of finite losses, a dot for one alone."""
    strokes = list[str]()
    known = [(k, x) for k, x in zip(steps, losses, strict=True) if x is not None]
    for finite, stretch in groupby(known, lambda point: math.isfinite(point[1])):
        if finite:
            points = [f"{_across(steps, k)} {100 - 100 * scale.height(x):.4g}" for k, x in stretch]
            strokes.append(f"M{'L'.join(points)}{'' if points[1:] else 'h0'}")
    return f'<path class="{side}" d="{"".join(strokes)}"/>'


def _across(steps: Sequence[int], step: int) -> str:
    length = steps[-1] - steps[0]
    return f"{100 * (step - steps[0]) / length if length else 50:.4g}"


def _number(loss: float | None) -> str:
    return "ended" if loss is None else repr(loss)

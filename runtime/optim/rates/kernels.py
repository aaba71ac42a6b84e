"""The kernel that computes a learning rate from the step count, and the cosine it needs.

One kernel serves every schedule: its words say which, its numbers are read from memory. All arithmetic is
float64; `schedules` states the formulas and packs words and numbers.
"""

# numba's decorators and intrinsics carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="arg-type,attr-defined,call-arg,import-untyped,operator,var-annotated"
# pyright: basic, reportCallIssue=false, reportOperatorIssue=false, reportPrivateImportUsage=false
from typing import Any

import numpy as np

from ....tape.numerics.engine.intrinsics import word
from ....tape.numerics.engine.kernel import kernel, vector, vector_as
from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.simd.operations import fma, polynomial, select
from ..laws.formulas import power

CONSTANT, STEP_DECAY, COSINE, ONE_CYCLE = range(4)
"""The kinds of schedules, as the first word says."""

HYPER = 5
"""Elements of a vector of hyperparameters; the learning rate is the first."""

NUMBERS = 4
"""Elements of the vector of numbers before those of the warm-ups; what a kind does not need is 0."""


def _table(text: str) -> tuple[float, ...]:
    return tuple(float.fromhex(number) for number in text.split())


COS = _table(
    """
    -0x1.b2973e1209065p-14 0x1.f9ccfd326bfd4p-10 -0x1.a6d1ed8f72595p-6 0x1.e1f50684f4c25p-3
    -0x1.55d3c7e3ca533p+0 0x1.03c1f081b5abcp+2
    """
)
"""C in ``cos(pi z) = 1 - pi²/2 s + s² C(s)``, where ``s = z²`` and ``0 <= z <= 1/4``; highest power first.

By the Remez exchange, as SIN: tests/bench/elementary_coefficients.py computes both anew.
"""

SIN = _table(
    """
    0x1.e3ff29c30c948p-12 -0x1.e300989d6baabp-8 0x1.5078300c48de1p-4 -0x1.32d2cce3241a3p-1
    0x1.466bc67758cb2p+1 -0x1.4abbce625be46p+2
    """
)
"""S in ``sin(pi z) = pi z + z s S(s)``, where ``s = z²`` and ``0 <= z <= 1/4``; highest power first."""

SQUARE = float.fromhex("-0x1.3bd3cc9be45dep+2")
SQUARE_LOW = float.fromhex("-0x1.692b71366cc04p-52")
"""``-pi²/2`` as a sum of two float64."""

PI = float.fromhex("0x1.921fb54442d18p+1")
PI_LOW = float.fromhex("0x1.1a62633145c07p-53")
"""``pi`` as a sum of two float64."""


@formula
def cospi(x: Any) -> Any:
    """``cos(pi x)`` of a float64 in [0, 1], within 0.8 ULP: folded at 1/2; above 1/4 the sine of the rest."""
    folded = x > 0.5
    y = select(folded, 1.0 - x, x)
    middle = y > 0.25
    z = select(middle, 0.5 - y, y)
    s = z * z
    high = fma(s, SQUARE, 1.0)
    lost = fma(s, SQUARE, 1.0 - high)
    cosine = high + fma(s, fma(s, polynomial(s, COS), SQUARE_LOW), lost)
    sine = fma(z, PI, z * fma(s, polynomial(s, SIN), PI_LOW))
    value = select(middle, sine, cosine)
    return select(folded, -value, value)


@formula
def anneal(start: Any, end: Any, share: Any) -> Any:
    """From ``start`` to ``end`` along half a cosine; exactly these at the shares 0 and 1."""
    weight = 0.5 * (1.0 + cospi(share))
    return start * weight + end * (1.0 - weight)


@formula
def one_cycle(numbers, last, t):
    """From the first rate up to the highest at the peak, which may lie between two counts, then down to the final."""
    first, highest, final, peak = numbers[0], numbers[1], numbers[2], numbers[3]
    if t < peak:
        return anneal(first, highest, t / peak)
    return anneal(highest, final, (t - peak) / (last - peak))


@formula
def rate(kind, whole, numbers, count):
    """The rate of an unwarmed schedule; ``whole`` is the period of a decay, else the count where changes end."""
    if kind == STEP_DECAY:
        return numbers[0] * power(numbers[1], count // whole)
    held = min(count, whole)
    if kind == COSINE:
        return anneal(numbers[0], numbers[1], np.float64(held) / np.float64(whole))
    if kind == ONE_CYCLE:
        return one_cycle(numbers, np.float64(whole), np.float64(held))
    return numbers[0]


@kernel
def learning_rate(table, ints, part, parts):
    """Copy the hyperparameters, the first replaced by the rate of this step.

    Table (float64): hyperparameters (5, written), hyperparameters (5), numbers, step (int64, from 1).
    Words: kind, its whole number, count at which it begins, number of warm-ups; then of each warm-up, the
    innermost first, the count at which it begins and its steps.
    Numbers: four of the kind, then the start of each warm-up.
    """
    if part == 0:
        out, base = vector(table, 0, 0, HYPER), vector(table, 1, 0, HYPER)
        warm_ups = word(ints, 3)
        numbers = vector(table, 2, 0, NUMBERS + warm_ups)
        count = vector_as(table, np.int64(0), 3, 0, 1)[0] - 1
        lr = rate(word(ints, 0), word(ints, 1), numbers, max(count - word(ints, 2), 0))
        for k in range(warm_ups):
            since, steps = max(count - word(ints, 4 + 2 * k), 0), word(ints, 5 + 2 * k)
            start = numbers[NUMBERS + k]
            if since < steps:
                lr = lr * (start + (1.0 - start) * np.float64(since) / np.float64(steps))
        for i in range(HYPER):
            out[i] = base[i]
        out[0] = lr
    return 0

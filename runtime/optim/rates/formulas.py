"""Formulas that schedules share, such as their cosine: all in float64."""

# Operations are typed for numbers of either type, and numbers of Python are none.
# mypy: disable-error-code="arg-type,operator"
# pyright: basic, reportArgumentType=false, reportOperatorIssue=false
from typing import Any, TypeAlias

import numpy as np

from ....tape.numerics.engine.numba_internals import formula
from ....tape.numerics.math import elementary
from ....tape.numerics.simd.operations import fma, polynomial, select
from ..laws.formulas import whole_power

Real: TypeAlias = Any
"""A float64, of compiled code or of numpy, or a float64 Var without axes."""


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
def cospi(x: Real) -> Real:
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
def anneal(start: Real, end: Real, share: Real) -> Real:
    """From ``start`` to ``end`` along half a cosine; exactly these at the shares 0 and 1."""
    weight = 0.5 * (1.0 + cospi(share))
    return start * weight + end * (1.0 - weight)


@formula
def done(count: Real, steps: Real) -> Real:
    """How much of so many steps is done, at most 1."""
    return select(count < steps, count, steps) / steps


@formula
def whole_times(count: Real, every: Real) -> Real:
    """How often so many counts are done, a whole number."""
    return np.int64(count) // np.int64(every)


@formula
def real_power(x: Real, exponent: Real) -> Real:
    """``x ** exponent`` as `ops.power` has it, for an exponent of at least 0."""
    whole = np.int64(exponent)
    return select(np.float64(whole) == exponent, whole_power(x, whole), elementary.power(x, exponent))

"""Sine and cosine of a float32, a float64 or a vector of either: reduced by pi / 2, then one of two polynomials.

Up to ``turns_known`` an angle is reduced in place, by three parts of pi / 2 (Cody and Waite, 1980).
"""

from ..engine.numba_internals import formula
from ..simd.operations import (
    Bits,
    Number,
    add,
    bitand,
    bits_of,
    constant,
    constants,
    float_of,
    fma,
    lshr,
    polynomial,
    select,
    shl,
    sub,
)


@formula
def near(x: Number) -> tuple[Number, Number, Bits]:
    """``(r, low, quadrant)``: x is ``r + low`` more than ``quadrant`` times pi / 2; for |x| up to `turns_known`."""
    c = constants(x)
    rounded = fma(x, c.two_over_pi, c.rounder)
    n = rounded - c.rounder
    first = fma(n, -c.half_pi, x)
    middle = n * c.half_pi_middle
    middle_low = fma(n, c.half_pi_middle, -middle)
    r = first - middle
    moved = r - first
    lost = (first - (r - moved)) - (middle + moved)
    return r, lost - fma(n, c.half_pi_low, middle_low), sub(bits_of(rounded), bits_of(c.rounder))


@formula
def turned(x: Number, r: Number, low: Number, quadrant: Bits) -> Number:
    """The sine of ``r + low`` after so many quarter turns; x itself if it is tiny."""
    c, one, zero = constants(x), constant(x, 1.0), constant(x, 0.0)
    z = r * r
    half_z = constant(x, 0.5) * z
    sine = r + fma(z * r, polynomial(z, c.sine), fma(-half_z, low, low))
    w = one - half_z
    cosine = w + (((one - w) - half_z) + fma(z * z, polynomial(z, c.cosine), -(r * low)))
    odd = float_of(shl(bitand(quadrant, 1), c.mantissa)) != zero
    y = select(odd, cosine, sine)
    return float_of(add(bits_of(y), shl(lshr(quadrant, 1), c.sign)))


@formula
def sin_near(x: Number) -> Number:
    """``sin x`` for |x| up to `turns_known`."""
    r, low, quadrant = near(x)
    return select(abs(x) < constants(x).tiny, x, turned(x, r, low, quadrant))


@formula
def cos_near(x: Number) -> Number:
    """``cos x`` for |x| up to `turns_known`."""
    r, low, quadrant = near(x)
    return turned(x, r, low, add(quadrant, 1))

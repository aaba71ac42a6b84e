"""Sine and cosine of every float: reduced by pi / 2, then one of two polynomials.

Up to ``turns_known`` the angle is reduced in place by three parts of pi / 2 (Cody and Waite, 1980), in vectors.
Above it the bits of 2 / pi that matter are multiplied by the angle as whole numbers (Payne and Hanek, 1983); a
group of sixteen elements that holds such an angle goes element by element. Which way an element goes depends on
the element alone.
"""

# numba's functions carry no types.
# pyright: basic, reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ....numerics.coefficients import FLOAT64, TWO_OVER_PI
from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.math.trigonometry import cos_near, sin_near, turned
from ....numerics.simd.lanes import any_negative, inlined
from ....numerics.simd.operations import (
    add,
    bits_of,
    constants,
    fma,
    sub,
)
from ....numerics.simd.vectors import LANES, load_part, rolled, store_part

HALF_PI, HALF_PI_MIDDLE = FLOAT64.half_pi, FLOAT64.half_pi_middle
HALF_WORD = np.uint64(0xFFFFFFFF)
FRACTION = np.uint64((1 << 52) - 1)
U1, U2, U32, U52, U62, U63 = (np.uint64(n) for n in (1, 2, 32, 52, 62, 63))
WORD_UNITS = (2.0**-32, 2.0**-64, 2.0**-96, 2.0**-128)


@inlined
def _high_product(a, b):
    """The upper 64 bits of the product of two words."""
    a_low, a_high, b_low, b_high = a & HALF_WORD, a >> U32, b & HALF_WORD, b >> U32
    middle = a_high * b_low + ((a_low * b_low) >> U32)
    other = a_low * b_high + (middle & HALF_WORD)
    return a_high * b_high + (middle >> U32) + (other >> U32)


@inlined
def _places(start, k):
    """64 binary places of 2 / pi, the ``k``-th word from place ``start`` on."""
    i, shift = (start >> 6) + k, np.uint64(start & 63)
    return (TWO_OVER_PI[i] << shift) | ((TWO_OVER_PI[i + 1] >> U1) >> (U63 - shift))


@inlined
def _turns(magnitude):
    """``(quadrant, high, low)``: twice the float of these bits over pi, modulo 4, with 128 places after the point."""
    start = np.int64(magnitude >> U52) - 1075 + 62
    mantissa = (magnitude & FRACTION) | (U1 << U52)
    first, second, third = _places(start, 0), _places(start, 1), _places(start, 2)
    carried = _high_product(mantissa, third)
    middle = mantissa * second + carried
    top = mantissa * first + _high_product(mantissa, second) + np.uint64(middle < carried)
    low = mantissa * third
    return top >> U62, (top << U2) | (middle >> U62), (middle << U2) | (low >> U62)


@inlined
def far(x):
    """``(r, low, quadrant)`` as `near` gives them, of a finite float64 of at least 1 in size."""
    bits = np.uint64(bits_of(x))
    quadrant, high, low = _turns((bits << U1) >> U1)
    above = high >> U63  # more than half a quadrant: count from the next one, down
    quadrant += above
    if above:
        high, low = ~high, ~low
    a, b = np.float64(high >> U32) * WORD_UNITS[0], np.float64(high & HALF_WORD) * WORD_UNITS[1]
    rest = np.float64(low >> U32) * WORD_UNITS[2] + np.float64(low & HALF_WORD) * WORD_UNITS[3]
    whole = a + b
    part = ((a - whole) + b) + rest
    share_of_turn = whole + part
    left = (whole - share_of_turn) + part
    r = share_of_turn * HALF_PI
    r_low = fma(share_of_turn, HALF_PI, -r) + (share_of_turn * HALF_PI_MIDDLE + left * HALF_PI)
    if (above == U1) != (x < 0.0):
        r, r_low = -r, -r_low
    quarters = np.int64(quadrant)
    return r, r_low, -quarters if x < 0.0 else quarters


@inlined
def _turned_far(table, x, quarters):
    """The sine of one element of any size after some quarter turns."""
    wide = np.float64(x)
    if not abs(wide) < np.inf:
        return x - x
    r, low, quadrant = far(wide)
    short, zero = real(table, r), sub(bits_of(x), bits_of(x))  # a zero as wide as x
    return turned(x, short, real(table, (r - np.float64(short)) + low), add(zero, quadrant + quarters))


@inlined
def _wave(table, ints, part, parts, function, quarters):
    start, n = share(word(ints, 0), part, parts)
    out, x = vector(table, 0, start, n), vector(table, 1, start, n)
    for i in range(0, n, LANES):
        rolled()
        left, group = n - i, load_part(x, i, n - i)
        if any_negative(bits_of(constants(group).turns_known - abs(group))):
            for j in range(i, min(i + LANES, n)):
                far_away = not abs(x[j]) <= constants(x[j]).turns_known
                out[j] = _turned_far(table, x[j], quarters) if far_away else function(x[j])
        else:
            store_part(out, i, left, function(group))
    return 0


@kernel
def sin(table, ints, part, parts):
    """``out = sin x``; NaN for infinite x."""
    return _wave(table, ints, part, parts, sin_near, 0)


@kernel
def cos(table, ints, part, parts):
    """``out = cos x``; NaN for infinite x."""
    return _wave(table, ints, part, parts, cos_near, 1)

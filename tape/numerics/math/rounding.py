"""Functions that are constant between whole numbers, of a float32, a float64 or a vector of either."""

from ..engine.numba_internals import formula
from ..simd.operations import Number, add, bits_of, constant, constants, float_of, select, shl, sub
from .inverse import signed


@formula
def sign(x: Number) -> Number:
    """1 for x > 0, -1 for x < 0, +0 for zeros; NaN stays."""
    zero, one = constant(x, 0.0), constant(x, 1.0)
    return select(x > zero, one, select(x < zero, -one, select(x == zero, zero, x)))


@formula
def nearest(a: Number) -> Number:
    """``a >= 0`` to the nearest whole number, half to even: from 2**mantissa on all numbers are whole."""
    c = constants(a)
    known = float_of(shl(add(sub(bits_of(a), bits_of(a)), c.bias + c.mantissa), c.mantissa))
    return select(a < known, (a + known) - known, a)


@formula
def _below(a: Number) -> Number:
    near, zero = nearest(a), constant(a, 0.0)
    return near - select(near > a, constant(a, 1.0), zero)


@formula
def _above(a: Number) -> Number:
    near, zero = nearest(a), constant(a, 0.0)
    return near + select(near < a, constant(a, 1.0), zero)


@formula
def floor(x: Number) -> Number:
    """The largest whole number that is not above x."""
    a = abs(x)
    return signed(select(x < constant(x, 0.0), _above(a), _below(a)), x)


@formula
def ceil(x: Number) -> Number:
    """The smallest whole number that is not below x."""
    a = abs(x)
    return signed(select(x < constant(x, 0.0), _below(a), _above(a)), x)


@formula
def rounded(x: Number) -> Number:
    """The nearest whole number, a half to the even one."""
    return signed(nearest(abs(x)), x)


@formula
def trunc(x: Number) -> Number:
    """x without its places after the point."""
    return signed(_below(abs(x)), x)

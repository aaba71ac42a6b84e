"""The kernel of the functions that are constant between whole numbers; a word says which it computes."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import add, bits_of, constant, constants, float_of, select, shl, sub
from ....numerics.simd.vectors import transform

SIGN, FLOOR, CEIL, ROUND, TRUNC = range(5)
"""What `rounded` computes."""


@inlined
def _sign(x):
    zero, one = constant(x, 0.0), constant(x, 1.0)
    return select(x > zero, one, select(x < zero, -one, select(x == zero, zero, x)))


@inlined
def nearest(a):
    """``a >= 0`` to the nearest whole number, half to even: from 2**mantissa on all numbers are whole."""
    c = constants(a)
    known = float_of(shl(add(sub(bits_of(a), bits_of(a)), c.bias + c.mantissa), c.mantissa))
    return select(a < known, (a + known) - known, a)


@inlined
def signed(y, x):
    """``y >= 0`` with the sign bit of x."""
    return float_of(add(bits_of(y), sub(bits_of(x), bits_of(abs(x)))))


@inlined
def _below(a):
    near, zero = nearest(a), constant(a, 0.0)
    return near - select(near > a, constant(a, 1.0), zero)


@inlined
def _above(a):
    near, zero = nearest(a), constant(a, 0.0)
    return near + select(near < a, constant(a, 1.0), zero)


@inlined
def _floor(x):
    a = abs(x)
    return signed(select(x < constant(x, 0.0), _above(a), _below(a)), x)


@inlined
def _ceil(x):
    a = abs(x)
    return signed(select(x < constant(x, 0.0), _below(a), _above(a)), x)


@inlined
def _round(x):
    return signed(nearest(abs(x)), x)


@inlined
def _trunc(x):
    return signed(_below(abs(x)), x)


@kernel
def rounded(table, ints, part, parts):
    """``out`` is the function ints[1] of x."""
    start, n = share(word(ints, 0), part, parts)
    out, x, which = vector(table, 0, start, n), vector(table, 1, start, n), word(ints, 1)
    if which == SIGN:
        transform(_sign, out, x)
    elif which == FLOOR:
        transform(_floor, out, x)
    elif which == CEIL:
        transform(_ceil, out, x)
    elif which == ROUND:
        transform(_round, out, x)
    else:
        transform(_trunc, out, x)
    return 0

"""Kernels of the inverse trigonometric functions and of the hyperbolic ones; a word says which one they compute."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.math import inverse
from ....numerics.simd.lanes import inlined
from ....numerics.simd.pointwise import pointwise
from ....numerics.simd.vectors import transform

ATAN, ASIN, ACOS = range(3)
"""What `arc` computes."""
SINH, COSH, ASINH, ACOSH, ATANH = range(5)
"""What `hyperbolic` computes."""


@inlined
def _unary(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    return vector(table, 0, start, n), vector(table, 1, start, n), word(ints, 1)


@kernel
def arc(table, ints, part, parts):
    """``out`` is the function ints[1] of x."""
    out, x, which = _unary(table, ints, part, parts)
    if which == ATAN:
        transform(inverse.atan, out, x)
    elif which == ASIN:
        transform(inverse.asin, out, x)
    else:
        transform(inverse.acos, out, x)
    return 0


atan2 = pointwise(inverse.atan2, home=__name__)


@kernel
def hyperbolic(table, ints, part, parts):
    """``out`` is the function ints[1] of x."""
    out, x, which = _unary(table, ints, part, parts)
    if which == SINH:
        transform(inverse.sinh, out, x)
    elif which == COSH:
        transform(inverse.cosh, out, x)
    elif which == ASINH:
        transform(inverse.asinh, out, x)
    elif which == ACOSH:
        transform(inverse.acosh, out, x)
    else:
        transform(inverse.atanh, out, x)
    return 0

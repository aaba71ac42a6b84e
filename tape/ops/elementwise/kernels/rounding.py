"""The kernel of the functions that are constant between whole numbers; a word says which it computes."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import word
from ....numerics.engine.kernel import kernel, share, vector
from ....numerics.math import rounding
from ....numerics.simd.vectors import transform

SIGN, FLOOR, CEIL, ROUND, TRUNC = range(5)
"""What `rounded` computes."""


@kernel
def rounded(table, ints, part, parts):
    """``out`` is the function ints[1] of x."""
    start, n = share(word(ints, 0), part, parts)
    out, x, which = vector(table, 0, start, n), vector(table, 1, start, n), word(ints, 1)
    if which == SIGN:
        transform(rounding.sign, out, x)
    elif which == FLOOR:
        transform(rounding.floor, out, x)
    elif which == CEIL:
        transform(rounding.ceil, out, x)
    elif which == ROUND:
        transform(rounding.rounded, out, x)
    else:
        transform(rounding.trunc, out, x)
    return 0

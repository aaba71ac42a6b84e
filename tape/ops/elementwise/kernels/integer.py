"""Kernels on whole numbers and on masks, one for each element type: a word says which function they compute."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ....numerics.engine.intrinsics import word
from ....numerics.engine.kernel import kernel, share, vector, vector_as
from ....numerics.simd.lanes import inlined

ADD, SUB, MUL, FLOOR_DIVIDE, REMAINDER, NEGATE = range(6)
"""What `integer` computes."""
AND, OR, XOR, NOT = range(4)
"""What `logical` computes."""
BYTE, SET = np.uint8(0), np.uint8(1)


@inlined
def _divided(a, b):
    """The quotient rounded down and the rest; 0 and 0 for b = 0. The processor traps where a quotient overflows."""
    if b == 0:
        return 0, 0
    if b == -1:
        return 0 - a, 0
    quotient = a // b
    return quotient, a - quotient * b


@kernel
def integer(table, ints, part, parts):
    """``out`` is the function ints[1] of a and b, for int64, wrapping."""
    start, n = share(word(ints, 0), part, parts)
    out, a, b, which = vector(table, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n), word(ints, 1)
    for i in range(n):
        if which == ADD:
            out[i] = a[i] + b[i]
        elif which == SUB:
            out[i] = a[i] - b[i]
        elif which == MUL:
            out[i] = a[i] * b[i]
        elif which == FLOOR_DIVIDE:
            out[i] = _divided(a[i], b[i])[0]
        elif which == REMAINDER:
            out[i] = _divided(a[i], b[i])[1]
        else:
            out[i] = 0 - a[i]
    return 0


@kernel
def logical(table, ints, part, parts):
    """``out`` is the function ints[1] of the masks a and b, which hold 0 or 1."""
    start, n = share(word(ints, 0), part, parts)
    out, a, which = vector_as(table, BYTE, 0, start, n), vector_as(table, BYTE, 1, start, n), word(ints, 1)
    b = vector_as(table, BYTE, 2, start, n)
    for i in range(n):
        if which == AND:
            out[i] = a[i] & b[i]
        elif which == OR:
            out[i] = a[i] | b[i]
        elif which == XOR:
            out[i] = a[i] ^ b[i]
        else:
            out[i] = a[i] ^ SET
    return 0

"""The kernels of whole powers and of what a mask keeps, which read whole numbers beside floats."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ....numerics.engine.intrinsics import real, word
from ....numerics.engine.kernel import kernel, share, vector, vector_as
from ....numerics.simd.lanes import inlined
from ....numerics.simd.operations import constant, select
from ....numerics.simd.vectors import transform

BYTE = np.uint8(0)


@inlined
def _power(x, exponent):
    result, square, left = constant(x, 1.0), x, abs(exponent)
    while left > 0:
        if left & 1:
            result = result * square
        square = square * square
        left >>= 1
    return constant(x, 1.0) / result if exponent < 0 else result


@kernel
def power(table, ints, part, parts):
    """``out = x ** |n|`` by binary powering, ``1 / that`` for n < 0; ints: number of elements, n."""
    start, n = share(word(ints, 0), part, parts)
    transform(_power, vector(table, 0, start, n), vector(table, 1, start, n), word(ints, 1))
    return 0


@kernel
def keep(table, ints, part, parts):
    """``out = x`` where the mask equals ints[1] (0 or 1), else +0; arrays: out, mask, x."""
    start, n = share(word(ints, 0), part, parts)
    out, mask, x = vector(table, 0, start, n), vector_as(table, BYTE, 1, start, n), vector(table, 2, start, n)
    zero, wanted = real(table, 0.0), word(ints, 1)
    for i in range(n):
        out[i] = select(mask[i] == wanted, x[i], zero)
    return 0

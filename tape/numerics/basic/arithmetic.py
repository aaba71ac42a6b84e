"""Kernels for the sum of two arrays and for other element types: what values need before there are ops."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ..engine.intrinsics import real, word
from ..engine.kernel import kernel, share, vector, vector_as
from ..simd.operations import select
from ..simd.pointwise import pointwise

BYTE, INT64 = np.uint8(0), np.int64(0)


@pointwise
def add(a, b):
    """``a + b``."""
    return a + b


@kernel
def to_float32(table, ints, part, parts):
    """``out = x`` rounded to float32."""
    start, n = share(word(ints, 0), part, parts)
    out, x = vector_as(table, np.float32(0), 0, start, n), vector(table, 1, start, n)
    for i in range(n):
        out[i] = np.float32(x[i])
    return 0


@kernel
def to_float64(table, ints, part, parts):
    """``out = x`` rounded to float64."""
    start, n = share(word(ints, 0), part, parts)
    out, x = vector_as(table, np.float64(0), 0, start, n), vector(table, 1, start, n)
    for i in range(n):
        out[i] = np.float64(x[i])
    return 0


@kernel
def to_bool(table, ints, part, parts):
    """``out = x != 0`` as bytes; NaN is true."""
    start, n = share(word(ints, 0), part, parts)
    out, x = vector_as(table, BYTE, 0, start, n), vector(table, 1, start, n)
    for i in range(n):
        out[i] = x[i] != 0
    return 0


@kernel
def float_to_int64(table, ints, part, parts):
    """``out = x`` cut towards zero; NaN gives 0, and what does not fit the nearest int64."""
    start, n = share(word(ints, 0), part, parts)
    out, x = vector_as(table, INT64, 0, start, n), vector(table, 1, start, n)
    low, high = real(table, -9223372036854775808.0), real(table, 9223372036854775808.0)
    for i in range(n):
        inside = (x[i] >= low) & (x[i] < high)
        cut = np.int64(select(inside, x[i], real(table, 0.0)))
        cut = select(x[i] >= high, np.int64(9223372036854775807), cut)
        out[i] = select(x[i] < low, np.int64(-9223372036854775808), cut)
    return 0


@kernel
def bool_to_int64(table, ints, part, parts):
    """``out = 1`` where the byte is set, else 0."""
    start, n = share(word(ints, 0), part, parts)
    out, x = vector_as(table, INT64, 0, start, n), vector(table, 1, start, n)
    for i in range(n):
        out[i] = np.int64(x[i])
    return 0

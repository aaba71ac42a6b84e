"""Where the arrays and the memory of the kernels of convolutions lie."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ....numerics.engine.intrinsics import entry
from ....numerics.simd.codegen import CACHE_LINE

OUT, SOURCE, OPERAND, LAST = range(4)
"""Positions of the table: the operand is weights or cotangents; the bias, if there is one, and scratch come last."""


@njit(inline="always")
def own_memory(table, k, part, nbytes):
    """Address of the memory of a part in the ``k``-th array, which has a cache line more than all parts need."""
    return (entry(table, k) + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE + part * nbytes

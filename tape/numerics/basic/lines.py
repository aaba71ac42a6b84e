"""Shares of elements that lie one behind the other, for kernels that are never links of a chain."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from numba import njit

from ..engine.code_for import GPU
from ..engine.kernel import share

TOGETHER = 1 if GPU else 16
"""Neighbours that shares do not split: a cache line of float32, two of float64. A GPU's shares are one element each."""


@njit(inline="always")
def share_lines(total, part, parts):
    """`share` of elements, such that each share begins with a cache line if the first does.

    A share that began within a line would have every vector in two of them, which took Adam a third more time.
    """
    first, count = share((total + TOGETHER - 1) // TOGETHER, part, parts)
    start = first * TOGETHER
    return start, max(0, min(count * TOGETHER, total - start))

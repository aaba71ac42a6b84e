"""Whether every element of a vector is finite."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
import numpy as np

from ..engine.intrinsics import word
from ..engine.kernel import kernel, vector
from ..simd.lanes import any_negative, inlined
from ..simd.operations import add, bitand, bitor, bits_of, constant, constants
from ..simd.vectors import bundle, load_bundle
from .lines import share_lines

BLOCK = 4096
"""Elements looked at between two branches; a multiple of a bundle of either type."""


@inlined
def _flag(x):
    """An integer that is negative if x is infinite or NaN: an exponent field of all ones, and one more."""
    field = bitand(bits_of(x), bits_of(constant(x, np.inf)))
    return add(field, bits_of(constants(x).smallest_normal))


@inlined
def _all_finite(x, first, stop):
    """Whether a whole number of bundles holds finite elements only."""
    step = bundle(x)
    seen = _flag(load_bundle(x, first))
    for i in range(first + step, stop, step):
        seen = bitor(seen, _flag(load_bundle(x, i)))
    return not any_negative(seen)


@kernel
def finite(table, ints, part, parts):
    """Fills nothing: the status is 1 + the position of the first infinity or NaN; array: x; ints: n."""
    start, n = share_lines(word(ints, 0), part, parts)
    x = vector(table, 0, start, n)
    step = bundle(x)
    for first in range(0, n, BLOCK):
        stop = min(first + BLOCK, n)
        whole = stop - (stop - first) % step
        if first < whole and _all_finite(x, first, whole):
            first = whole
        for i in range(first, stop):
            if _flag(x[i]) < 0:
                return start + i + 1
    return 0

"""The larger and the smaller of two numbers, or of the lanes of two vectors.

NaN wins, and -0 < +0. So values are in a total order, and no order of comparisons can be seen in the bits.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ..engine.numba_internals import formula
from .operations import Number, bitand, bitor, bits_of, float_of, select


@formula
def larger(a: Number, b: Number) -> Number:
    """The larger of two numbers, or of the lanes of two vectors. What compares equal differs in its sign alone."""
    equal = float_of(bitand(bits_of(a), bits_of(b)))
    return select(b != b, b, select(a == b, equal, select(b > a, b, a)))


@formula
def smaller(a: Number, b: Number) -> Number:
    """The smaller of two numbers, or of the lanes of two vectors."""
    equal = float_of(bitor(bits_of(a), bits_of(b)))
    return select(b != b, b, select(a == b, equal, select(b < a, b, a)))

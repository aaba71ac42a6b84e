"""The larger and the smaller of two numbers, or of the lanes of two vectors.

NaN wins, and -0 < +0. So values are in a total order, and no order of comparisons can be seen in the bits.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from .lanes import inlined
from .operations import bitand, bitor, bits_of, float_of, select


@inlined
def larger(a, b):
    """The larger of two numbers, or of the lanes of two vectors. What compares equal differs in its sign alone."""
    equal = float_of(bitand(bits_of(a), bits_of(b)))
    return select(b != b, b, select(a == b, equal, select(b > a, b, a)))


@inlined
def smaller(a, b):
    """The smaller of two numbers, or of the lanes of two vectors."""
    equal = float_of(bitor(bits_of(a), bits_of(b)))
    return select(b != b, b, select(a == b, equal, select(b < a, b, a)))

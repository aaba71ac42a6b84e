"""What the words of normalised rows say: the words, their positions, the parameters and sizes of rows."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ....numerics.engine.intrinsics import word
from ....numerics.engine.kernel import vector
from ....numerics.simd.lanes import inlined

SHAPE = ("rows", "stride", "segments", "length", "pitch", "p", "q", "parameters")
ROWS, STRIDE, SEGMENTS, LENGTH, PITCH, P, Q, PARAMETERS, WEIGHT, CENTRED, EPS, STATISTICS, BIAS = range(13)


@inlined
def own(ints):
    """Whether each element of a row has a parameter of its own, side by side as the elements are."""
    return word(ints, LENGTH) == 1 and word(ints, Q) == 1


@inlined
def first_parameter(ints, r):
    """The number of the first parameter of a row."""
    return (r * word(ints, P)) % word(ints, PARAMETERS)


@inlined
def following(ints, number):
    """That of the row after the one whose number is given; a division would take as long as a short row."""
    following = number + word(ints, P)
    return following - word(ints, PARAMETERS) if following >= word(ints, PARAMETERS) else following


@inlined
def parameter(table, k, i, default):
    """Element ``i`` of the k-th array, or the default where k is 0."""
    return vector(table, k, i, 1)[0] if k else default


@inlined
def elements(ints):
    """How many elements a row has."""
    return word(ints, SEGMENTS) * word(ints, LENGTH)

"""Loads and stores of planes that are divided into cells of two by two: sixteen such cells are sixty-four elements.

That holds where a line's windows are a divisor of sixteen, so that no line of them is begun that the vector does not
end. Cells come as their four quarters: above left and right, below left and right.
"""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportOptionalCall=false
from numba import types
from numba.extending import intrinsic

from ....numerics.engine import emit
from ....numerics.engine.emit import I64, at, shuffled
from ....numerics.engine.numba_internals import ir
from ....numerics.simd.lanes import Lanes
from ....numerics.simd.parts import get_part, put_part
from ....numerics.simd.vectors import LANES, place_of
from .windows import WIDTHS

EVENS, ODDS = range(0, 2 * LANES, 2), range(1, 2 * LANES, 2)
BESIDE = [lane // 2 + lane % 2 * LANES for lane in range(2 * LANES)]


def _rows(width):
    """Where, among the halves of sixty-four elements, the upper rows' lie, then the lower rows'."""
    upper = [lane // width * 2 * width + lane % width for lane in range(LANES)]
    return [*upper, *[lane + width for lane in upper]]


def _rows_back(width):
    rows = _rows(width)
    return [rows.index(lane) for lane in range(2 * LANES)]


def _by_width(builder, kind, shuffles, low, high):
    """Two vectors shuffled as the width of lines says, by its number among `WIDTHS`."""
    done = builder.append_basic_block("shuffled")
    blocks = [builder.append_basic_block("width") for _ in WIDTHS]
    choice = builder.switch(kind, blocks[0])
    both = ir.VectorType(low.type.element, 2 * LANES)
    with builder.goto_block(done):
        result = builder.phi(both)
    for number, (width, block) in enumerate(zip(WIDTHS, blocks, strict=True), 1):
        choice.add_case(I64(number), block)
        builder.position_at_end(block)
        result.add_incoming(shuffled(builder, shuffles(width), low, high), block)
        builder.branch(done)
    builder.position_at_end(done)
    return [shuffled(builder, range(start, start + LANES), result) for start in (0, LANES)]


def _parts(builder, place, left, size):
    """Where the four vectors lie, and how many elements of each are at hand."""
    for part in range(4):
        elements = builder.sub(builder.mul(left, I64(4)), I64(part * LANES))
        yield at(builder, place, part * LANES * size), elements


@intrinsic
def load_quarters(context, x, i, number, left):
    """The quarters of sixteen cells from element ``i`` on, of which ``left`` are read."""
    kind = Lanes(x.dtype, LANES)

    def generate(context, builder, signature, args):
        array, i, number, left = args
        vector, place = context.get_value_type(kind), place_of(context, builder, x, array, i)
        a, b, c, d = [get_part(builder, *part, vector) for part in _parts(builder, place, left, emit.bytes_of(vector))]
        sides = [[shuffled(builder, lanes, *pair) for pair in ((a, b), (c, d))] for lanes in (EVENS, ODDS)]
        (upper, lower), (upper_right, lower_right) = [_by_width(builder, number, _rows, *side) for side in sides]
        return context.make_tuple(builder, signature.return_type, (upper, upper_right, lower, lower_right))

    return types.UniTuple(kind, 4)(x, types.int64, types.int64, types.int64), generate


@intrinsic
def store_quarters(context, x, i, number, left, quarters):
    """Write the quarters of the first ``left`` of sixteen cells from element ``i`` on."""

    def generate(context, builder, signature, args):
        array, i, number, left, quarters = args
        upper, upper_right, lower, lower_right = [builder.extract_value(quarters, k) for k in range(4)]
        evens = _by_width(builder, number, _rows_back, upper, lower)
        odds = _by_width(builder, number, _rows_back, upper_right, lower_right)
        whole = [shuffled(builder, BESIDE, *pair) for pair in zip(evens, odds, strict=True)]
        vectors = [shuffled(builder, range(start, start + LANES), pair) for pair in whole for start in (0, LANES)]
        place = place_of(context, builder, x, array, i)
        for vector, part in zip(vectors, _parts(builder, place, left, emit.bytes_of(upper.type)), strict=True):
            put_part(builder, vector, *part)
        return context.get_dummy_value()

    return types.void(x, types.int64, types.int64, types.int64, quarters), generate

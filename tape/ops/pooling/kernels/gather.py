"""Loads and stores of elements side by side or equally far apart, in sixteen lanes or one at a time.

What is read need not be an array: a whole number n stands for the positions n, n + 1, n + 2, …, and any other number
for itself. No byte is touched but those of the elements asked for, and those between them when reading.
"""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportOptionalCall=false
from functools import partial

from numba import types
from numba.extending import intrinsic

from ....numerics.engine import emit
from ....numerics.engine.emit import I1, I64, POINTER, at, first_lanes, shuffled, splat
from ....numerics.engine.numba_internals import ir
from ....numerics.simd.forms import INTEGER_OF
from ....numerics.simd.lanes import Lanes, element_of, with_element
from ....numerics.simd.parts import get_part, put_part
from ....numerics.simd.vectors import LANES, place_of


@intrinsic
def load_one(context, x, i, spacing, left):
    """The element at position ``i``: the first lane of `load_spaced`."""
    if isinstance(x, types.Integer):
        return x(x, types.int64, spacing, left), lambda ctx, b, sig, args: b.add(args[0], args[1])
    if not isinstance(x, types.Array):
        return x(x, i, spacing, left), lambda ctx, b, sig, args: args[0]

    def generate(context, builder, signature, args):
        place = place_of(context, builder, x, args[0], args[1])
        return emit.load(builder, place, context.get_data_type(x.dtype))

    return x.dtype(x, types.int64, spacing, left), generate


@intrinsic
def load_spaced(context, x, i, spacing, left):
    """Sixteen lanes of which the first ``left`` hold every ``spacing``-th element from position ``i`` on."""
    if isinstance(x, types.Integer):
        return Lanes(x, LANES)(x, types.int64, types.int64, types.int64), _generate_positions
    if not isinstance(x, types.Array):
        return x(x, i, spacing, left), lambda ctx, b, sig, args: args[0]
    kind = Lanes(x.dtype, LANES)

    def generate(context, builder, signature, args):
        array, i, spacing, left = args
        place, vector = place_of(context, builder, x, array, i), context.get_value_type(kind)
        ways = [
            partial(get_part, builder, place, left, vector),
            partial(_load_evens, builder, place, left, vector),
            partial(_gather, builder, place, spacing, left, vector),
        ]
        return _by_spacing(builder, spacing, ways)

    return kind(x, types.int64, types.int64, types.int64), generate


def _by_spacing(builder, spacing, ways):
    """Run the first way where the spacing is 1, the second where it is 2, else the third; what that one returns."""
    if len(ways) == 1:
        return ways[0]()
    beside = builder.icmp_signed("==", spacing, I64(4 - len(ways)))
    with builder.if_else(beside) as (now, later):
        with now:
            first, first_block = ways[0](), builder.block
        with later:
            second, second_block = _by_spacing(builder, spacing, ways[1:]), builder.block
    if first is None:
        return None
    result = builder.phi(first.type)
    result.add_incoming(first, first_block)
    result.add_incoming(second, second_block)
    return result


def _generate_positions(context, builder, signature, args):
    first, i, spacing, _ = args
    steps = ir.Constant(ir.VectorType(I64, LANES), list(range(LANES)))
    start = splat(builder, builder.add(first, i), LANES)
    return builder.add(start, builder.mul(steps, splat(builder, spacing, LANES)))


def _load_evens(builder, place, left, vector):
    reach = builder.sub(builder.add(left, left), I64(1))  # up to the last element asked for
    low = get_part(builder, place, reach, vector)
    upper = at(builder, place, LANES * emit.bytes_of(vector))
    high = get_part(builder, upper, builder.sub(reach, I64(LANES)), vector)
    return shuffled(builder, range(0, 2 * LANES, 2), low, high)


def _addresses(builder, place, spacing, vector):
    """Pointers to as many elements as a vector has, ``spacing`` apart."""
    steps = ir.Constant(ir.VectorType(I64, LANES), [lane * emit.bytes_of(vector) for lane in range(LANES)])
    start = splat(builder, builder.ptrtoint(place, I64), LANES)
    numbers = builder.add(start, builder.mul(steps, splat(builder, spacing, LANES)))
    return builder.inttoptr(numbers, ir.VectorType(POINTER, LANES))


def _gather(builder, place, spacing, left, vector):
    pointers, mask = _addresses(builder, place, spacing, vector), first_lanes(builder, left, LANES)
    return emit.gather(builder, pointers, mask, ir.Constant(vector, None))


def _scatter(builder, value, place, spacing, left):
    pointers, mask = _addresses(builder, place, spacing, value.type), first_lanes(builder, left, LANES)
    emit.scatter(builder, value, pointers, mask)


@intrinsic
def store_one(context, x, i, spacing, left, value):
    """Write the element at position ``i``."""

    def generate(context, builder, signature, args):
        place = place_of(context, builder, x, args[0], args[1])
        emit.store(builder, args[4], place)
        return context.get_dummy_value()

    return types.void(x, types.int64, spacing, left, x.dtype), generate


@intrinsic
def store_spaced(context, x, i, spacing, left, value):
    """Write the first ``left`` lanes to every ``spacing``-th element from position ``i`` on."""

    def generate(context, builder, signature, args):
        array, i, spacing, left, value = args
        place = place_of(context, builder, x, array, i)
        ways = [
            partial(put_part, builder, value, place, left),
            partial(_store_evens, builder, value, place, left),
            partial(_scatter, builder, value, place, spacing, left),
        ]
        _by_spacing(builder, spacing, ways)
        return context.get_dummy_value()

    return types.void(x, types.int64, types.int64, types.int64, value), generate


def _store_evens(builder, value, place, left):
    evens = ir.Constant(ir.VectorType(I1, LANES), [True, False] * (LANES // 2))
    reach, size = builder.add(left, left), emit.bytes_of(value.type)
    for part in range(2):
        spread = shuffled(builder, [(part * LANES + i) // 2 for i in range(LANES)], value)
        mask = builder.and_(first_lanes(builder, builder.sub(reach, I64(part * LANES)), LANES), evens)
        emit.masked_store(builder, spread, at(builder, place, part * LANES * size), mask)


@intrinsic
def same_bits(context, x, y):
    """Whether two numbers have the same bits, or in which lanes two vectors have."""
    if x != y:
        return None
    integer = with_element(x, INTEGER_OF.get(element_of(x), element_of(x)))

    def generate(context, builder, signature, args):
        return builder.icmp_signed("==", *[builder.bitcast(a, context.get_value_type(integer)) for a in args])

    return with_element(x, types.boolean)(x, y), generate

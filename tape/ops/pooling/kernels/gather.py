"""Loads and stores of elements side by side or equally far apart, in sixteen lanes or one at a time.

What is read need not be an array: a whole number n stands for the positions n, n + 1, n + 2, …, and any other number
for itself. No byte is touched but those of the elements asked for, and those between them when reading.
"""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportOptionalCall=false
from functools import partial

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ....numerics.engine.intrinsics import I1, I32, I64, POINTER, declare
from ....numerics.simd.generic import FLOATS
from ....numerics.simd.lanes import Lanes, element_of, mask_below, splat, with_element
from ....numerics.simd.vectors import LANES, get_part, place_of, put_part, size_of


@intrinsic
def load_one(context, x, i, spacing, left):
    """The element at position ``i``: the first lane of `load_spaced`."""
    if isinstance(x, types.Integer):
        return x(x, types.int64, spacing, left), lambda ctx, b, sig, args: b.add(args[0], args[1])
    if not isinstance(x, types.Array):
        return x(x, i, spacing, left), lambda ctx, b, sig, args: args[0]

    def generate(context, builder, signature, args):
        place = place_of(context, builder, x, args[0], args[1])
        return builder.load(place, typ=context.get_data_type(x.dtype), align=size_of(x))

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
            partial(get_part, builder, place, left, vector, size_of(x)),
            partial(_load_evens, builder, place, left, vector, size_of(x)),
            partial(_gather, builder, place, spacing, left, vector, size_of(x)),
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


def _load_evens(builder, place, left, vector, align):
    reach = builder.sub(builder.add(left, left), I64(1))  # up to the last element asked for
    low = get_part(builder, place, reach, vector, align)
    upper = builder.gep(place, [I64(LANES)], source_etype=vector.element)
    high = get_part(builder, upper, builder.sub(reach, I64(LANES)), vector, align)
    return builder.shuffle_vector(low, high, ir.Constant(ir.VectorType(I32, LANES), list(range(0, 2 * LANES, 2))))


def _addresses(builder, place, spacing, align):
    """Pointers to sixteen elements, ``spacing`` apart."""
    steps = ir.Constant(ir.VectorType(I64, LANES), [lane * align for lane in range(LANES)])
    start = splat(builder, builder.ptrtoint(place, I64), LANES)
    numbers = builder.add(start, builder.mul(steps, splat(builder, spacing, LANES)))
    return builder.inttoptr(numbers, ir.VectorType(POINTER, LANES))


def _gather(builder, place, spacing, left, vector, align):
    pointers, mask = _addresses(builder, place, spacing, align), mask_below(builder, left, LANES)
    name = f"llvm.masked.gather.{_suffix(vector, align)}.v{LANES}p0"
    function = declare(builder, name, vector, [pointers.type, I32, mask.type, vector])
    return builder.call(function, [pointers, I32(align), mask, ir.Constant(vector, None)])


def _scatter(builder, value, place, spacing, left, align):
    pointers, mask = _addresses(builder, place, spacing, align), mask_below(builder, left, LANES)
    name = f"llvm.masked.scatter.{_suffix(value.type, align)}.v{LANES}p0"
    function = declare(builder, name, ir.VoidType(), [value.type, pointers.type, I32, mask.type])
    builder.call(function, [value, pointers, I32(align), mask])


def _suffix(vector, align):
    return f"v{LANES}{'i' if vector.element == I64 else 'f'}{align * 8}"


@intrinsic
def store_one(context, x, i, spacing, left, value):
    """Write the element at position ``i``."""

    def generate(context, builder, signature, args):
        place = place_of(context, builder, x, args[0], args[1])
        builder.store(args[4], builder.bitcast(place, args[4].type.as_pointer()), align=size_of(x))
        return context.get_dummy_value()

    return types.void(x, types.int64, spacing, left, x.dtype), generate


@intrinsic
def store_spaced(context, x, i, spacing, left, value):
    """Write the first ``left`` lanes to every ``spacing``-th element from position ``i`` on."""

    def generate(context, builder, signature, args):
        array, i, spacing, left, value = args
        place = place_of(context, builder, x, array, i)
        ways = [
            partial(put_part, builder, value, place, left, size_of(x)),
            partial(_store_evens, builder, value, place, left, size_of(x)),
            partial(_scatter, builder, value, place, spacing, left, size_of(x)),
        ]
        _by_spacing(builder, spacing, ways)
        return context.get_dummy_value()

    return types.void(x, types.int64, types.int64, types.int64, value), generate


def _store_evens(builder, value, place, left, align):
    evens = ir.Constant(ir.VectorType(I1, LANES), [True, False] * (LANES // 2))
    reach, element = builder.add(left, left), value.type.element
    name = f"llvm.masked.store.{_suffix(value.type, align)}.p0"
    for part in range(2):
        places = ir.Constant(ir.VectorType(I32, LANES), [(part * LANES + i) // 2 for i in range(LANES)])
        spread = builder.shuffle_vector(value, value, places)
        mask = builder.and_(mask_below(builder, builder.sub(reach, I64(part * LANES)), LANES), evens)
        function = declare(builder, name, ir.VoidType(), [value.type, POINTER, I32, mask.type])
        target = builder.gep(place, [I64(part * LANES)], source_etype=element)
        builder.call(function, [spread, target, I32(align), mask])


@intrinsic
def same_bits(context, x, y):
    """Whether two numbers have the same bits, or in which lanes two vectors have."""
    if x != y:
        return None
    integer = with_element(x, FLOATS[element_of(x)][1] if element_of(x) in FLOATS else element_of(x))

    def generate(context, builder, signature, args):
        return builder.icmp_signed("==", *[builder.bitcast(a, context.get_value_type(integer)) for a in args])

    return with_element(x, types.boolean)(x, y), generate

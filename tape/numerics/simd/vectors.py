"""Vectors in memory: loads and stores of whole vectors and of their first lanes.

Positions count elements of a contiguous array. What is not an array is loaded as itself, so that one loop
serves operands of both kinds; nothing is stored where the array is None. No alignment is assumed beyond that of
an element.
"""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from numba import types
from numba.extending import intrinsic

from ..engine import emit
from ..engine.code_for import BUNDLE, GPU
from ..engine.emit import I1, I8, I64, VOID
from ..engine.numba_internals import array_data, ir
from .lanes import Lanes, inlined
from .parts import get_part, get_whole_or_part, put_part, put_whole_or_part

LANES = 16
"""Lanes of the sums of the bit contract."""


def place_of(context, builder, kind, array, i):
    """The pointer to element ``i``."""
    data = array_data(context, builder, kind, array)
    return builder.gep(data, [i], source_etype=context.get_data_type(kind.dtype))


def size_of(kind):
    """Bytes of an element of a type of arrays or pointers."""
    return kind.dtype.bitwidth // 8


def bundled(kind):
    """The type of a bundle of elements of a type of arrays or pointers: a number of whole groups of `LANES`, one where
    registers are few, or where a GPU has other threads to wait with.
    """
    return Lanes(kind.dtype, LANES if GPU else max(LANES, BUNDLE // size_of(kind)))


@intrinsic
def bundle(context, x):
    """How many elements of an array make a bundle: a constant."""
    return types.int64(x), lambda ctx, b, sig, args: I64(bundled(x).count)


@intrinsic
def rolled(context):
    """Keep LLVM from unrolling the loop around this: an empty piece of assembly, which it may not double."""

    def generate(context, builder, signature, args):
        builder.asm(ir.FunctionType(VOID, []), "", "", [], side_effect=True)
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def bundle_of(context, x, value):
    """A bundle of elements of an array's type that all are ``value``."""
    kind = bundled(x)
    return kind(x, x.dtype), lambda ctx, b, sig, args: emit.splat(b, args[1], kind.count)


@intrinsic
def load_bundle(context, x, i):
    """A bundle of elements from position ``i`` on."""
    if not isinstance(x, types.Array):
        return x(x, i), lambda ctx, b, sig, args: args[0]
    kind = bundled(x)

    def generate(context, builder, signature, args):
        place = place_of(context, builder, x, args[0], args[1])
        return emit.load(builder, place, context.get_value_type(kind))

    return kind(x, types.int64), generate


@intrinsic
def load_lane(context, x, i):
    """The element at position ``i``, as a vector of one lane."""
    if not isinstance(x, types.Array):
        return x(x, i), lambda ctx, b, sig, args: args[0]
    kind = Lanes(x.dtype, 1)

    def generate(context, builder, signature, args):
        place = place_of(context, builder, x, args[0], args[1])
        return emit.load(builder, place, context.get_value_type(kind))

    return kind(x, types.int64), generate


@intrinsic
def load_part(context, x, i, left):
    """Sixteen lanes of which the first ``left`` hold the elements from position ``i`` on, the others 0."""
    if not isinstance(x, types.Array):
        return x(x, i, left), lambda ctx, b, sig, args: args[0]
    kind = Lanes(x.dtype, LANES)

    def generate(context, builder, signature, args):
        place = place_of(context, builder, x, args[0], args[1])
        return get_part(builder, place, args[2], context.get_value_type(kind))

    return kind(x, types.int64, types.int64), generate


def _few(kind):
    """The type of the vectors behind the last bundle: a quarter of its bytes, one register, and at most `LANES`."""
    return Lanes(kind.dtype, min(LANES, BUNDLE // 4 // size_of(kind)))


@intrinsic
def few(context, x):
    """How many elements of an array `load_few` takes: a constant."""
    return types.int64(x), lambda ctx, b, sig, args: I64(_few(x).count)


@intrinsic
def load_few(context, x, i, left):
    """As `load_part`, of as many lanes as `few` says; without a mask if all are wanted."""
    if not isinstance(x, types.Array):
        return x(x, i, left), lambda ctx, b, sig, args: args[0]
    kind = _few(x)

    def generate(context, builder, signature, args):
        place, vector = place_of(context, builder, x, args[0], args[1]), context.get_value_type(kind)
        return get_whole_or_part(builder, place, args[2], vector)

    return kind(x, types.int64, types.int64), generate


@intrinsic
def store_few(context, x, i, left, value):
    """Write the first ``left`` lanes from position ``i`` on, without a mask if that is all."""

    def generate(context, builder, signature, args):
        put_whole_or_part(builder, args[3], place_of(context, builder, x, args[0], args[1]), args[2])
        return context.get_dummy_value()

    return types.void(x, types.int64, types.int64, value), generate


@intrinsic
def flags(context, x, i, like):
    """The booleans of an array of bytes from ``i`` on, one for each lane of ``like``; true without one."""
    kind, mask = ir.VectorType(I8, like.count), Lanes(types.boolean, like.count)

    def generate(context, builder, signature, args):
        if x == types.none:
            return emit.constant(ir.VectorType(I1, like.count), 1)
        place = place_of(context, builder, x, args[0], args[1])
        return builder.icmp_unsigned("!=", emit.load(builder, place, kind), ir.Constant(kind, None))

    return mask(x, types.int64, like), generate


@intrinsic
def flags_part(context, x, i, left):
    """Sixteen booleans of which the first ``left`` are those of an array of bytes from ``i`` on; true without one."""
    kind, mask = ir.VectorType(I8, LANES), Lanes(types.boolean, LANES)

    def generate(context, builder, signature, args):
        if x == types.none:
            return emit.constant(ir.VectorType(I1, LANES), 1)
        place = place_of(context, builder, x, args[0], args[1])
        return builder.icmp_unsigned("!=", get_part(builder, place, args[2], kind), ir.Constant(kind, None))

    return mask(x, types.int64, types.int64), generate


@intrinsic
def store(context, x, i, value):
    """Write all lanes from position ``i`` on."""
    if x == types.none:
        return types.void(x, i, value), lambda ctx, b, sig, args: ctx.get_dummy_value()

    def generate(context, builder, signature, args):
        place = place_of(context, builder, x, args[0], args[1])
        emit.store(builder, args[2], place)
        return context.get_dummy_value()

    return types.void(x, types.int64, value), generate


@intrinsic
def store_part(context, x, i, left, value):
    """Write the first ``left`` lanes from position ``i`` on."""
    if x == types.none:
        return types.void(x, i, left, value), lambda ctx, b, sig, args: ctx.get_dummy_value()

    def generate(context, builder, signature, args):
        put_part(builder, args[3], place_of(context, builder, x, args[0], args[1]), args[2])
        return context.get_dummy_value()

    return types.void(x, types.int64, types.int64, value), generate


def _transform(function, out, x, *numbers):
    whole = out.size - out.size % bundle(out)
    for i in range(0, whole, bundle(out)):
        rolled()
        store(out, i, function(load_bundle(x, i), *numbers))
    for i in range(whole, out.size, few(out)):
        rolled()
        left = out.size - i
        store_few(out, i, left, function(load_few(x, i, left), *numbers))


def _transform_each(function, out, x, *numbers):
    for i in range(out.size):
        store(out, i, function(load_lane(x, i), *numbers))


def _combine(function, out, a, b, *numbers):
    whole = out.size - out.size % bundle(out)
    for i in range(0, whole, bundle(out)):
        rolled()
        store(out, i, function(load_bundle(a, i), load_bundle(b, i), *numbers))
    for i in range(whole, out.size, few(out)):
        rolled()
        left = out.size - i
        store_few(out, i, left, function(load_few(a, i, left), load_few(b, i, left), *numbers))


def _combine_each(function, out, a, b, *numbers):
    for i in range(out.size):
        store(out, i, function(load_lane(a, i), load_lane(b, i), *numbers))


transform = inlined(_transform_each if GPU else _transform)
"""``transform(function, out, x, *numbers)``: ``out[i] = function(x[i], *numbers)`` of contiguous arrays.

out may be x.
"""

combine = inlined(_combine_each if GPU else _combine)
"""``combine(function, out, a, b, *numbers)``: ``out[i] = function(a[i], b[i], *numbers)`` of contiguous arrays.

out may be one of them. A plain loop is as fast only where no array is another: LLVM then proves it at run time, else
it takes the elements one by one. On a GPU, where a thread has one element, it is what is wanted.
"""

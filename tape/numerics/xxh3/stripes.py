"""The eight accumulators of XXH3 in a vector: what long messages are taken into, a stripe of 64 bytes at a time.

What a stripe adds depends on the stripe and the secret alone, so the sums of the stripes of a block can be made by any
thread; only the step between two blocks needs what came before.
"""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from numba import types
from numba.extending import intrinsic

from ..engine import emit
from ..engine.emit import I32, I64
from ..engine.numba_internals import ir
from ..simd.lanes import Lanes
from .constants import BLOCK, LANES, PRIME32_1, START, STRIPE, secret_word
from .words import secret_table

ACCUMULATORS = Lanes(types.int64, LANES)
WORDS, HALVES = ir.VectorType(I64, LANES), ir.VectorType(I32, 2 * LANES)


def _secret(offset):
    return ir.Constant(WORDS, [secret_word(offset + 8 * lane) for lane in range(LANES)])


PER_BLOCK = BLOCK // STRIPE
SECRETS = tuple(_secret(8 * stripe) for stripe in range(PER_BLOCK))
LAST, BETWEEN = _secret(121), _secret(128)
"""What the last stripe of a message and the step between two blocks are mixed with."""


def _constant(words):
    value = ir.Constant(WORDS, list(words))
    return intrinsic(lambda context: (ACCUMULATORS(), lambda ctx, b, sig, args: value))


start, zeros = _constant(START), _constant([0] * LANES)


@intrinsic
def get(context, address):
    """Eight words from an address."""

    def generate(context, builder, signature, args):
        return emit.load(builder, emit.at(builder, args[0]), WORDS, align=1)

    return ACCUMULATORS(types.int64), generate


@intrinsic
def put(context, address, value):
    """Eight words to an address, aligned as words are."""

    def generate(context, builder, signature, args):
        emit.store(builder, args[1], emit.at(builder, args[0]))
        return context.get_dummy_value()

    return types.none(types.int64, ACCUMULATORS), generate


def _taken(builder, sums, data, secret):
    """The accumulators after one more stripe: each word is added to its neighbour, and the product of its halves."""
    keyed = builder.xor(data, secret)
    low = builder.and_(keyed, emit.constant(WORDS, 0xFFFFFFFF))
    product = builder.mul(low, builder.lshr(keyed, emit.constant(WORDS, 32)))
    neighbours = emit.shuffled(builder, [lane ^ 1 for lane in range(LANES)], data)
    return builder.add(builder.add(sums, neighbours), product)


def _seen(builder, seen, data, field, one):
    """``seen``, with the sign of a half set where the exponent of its number is all ones."""
    halves = builder.bitcast(data, HALVES)
    carried = builder.add(builder.and_(halves, builder.bitcast(field, HALVES)), builder.bitcast(one, HALVES))
    return builder.bitcast(builder.or_(builder.bitcast(seen, HALVES), carried), WORDS)


_PAIR = types.UniTuple(ACCUMULATORS, 2)


def _taking(secrets):
    """An intrinsic that takes as many stripes in turn, and looks for numbers that are not finite."""

    def take(context, sums, seen, field, one, address):
        def generate(context, builder, signature, args):
            sums, seen, field, one, address = args
            for i, secret in enumerate(secrets):
                data = emit.load(builder, emit.at(builder, address, STRIPE * i), WORDS, align=1)
                sums = _taken(builder, sums, data, secret)
                seen = _seen(builder, seen, data, field, one)
            return context.make_tuple(builder, signature.return_type, (sums, seen))

        return _PAIR(ACCUMULATORS, ACCUMULATORS, ACCUMULATORS, ACCUMULATORS, types.int64), generate

    return intrinsic(take)


take_block, take_last = _taking(SECRETS), _taking([LAST])


@intrinsic
def take_stripe(context, sums, seen, field, one, address, number):
    """One stripe of a block, of which it is that of this number."""

    def generate(context, builder, signature, args):
        sums, seen, field, one, address, number = args
        secret = emit.load(
            builder, emit.at(builder, secret_table(builder), builder.mul(number, I64(8))), WORDS, align=1
        )
        data = emit.load(builder, emit.at(builder, address), WORDS, align=1)
        found = _taken(builder, sums, data, secret), _seen(builder, seen, data, field, one)
        return context.make_tuple(builder, signature.return_type, found)

    kinds = (ACCUMULATORS, ACCUMULATORS, ACCUMULATORS, ACCUMULATORS, types.int64, types.int64)
    return _PAIR(*kinds), generate


@intrinsic
def look(context, seen, field, one, address):
    """Eight words looked at alone."""

    def generate(context, builder, signature, args):
        seen, field, one, address = args
        data = emit.load(builder, emit.at(builder, address), WORDS, align=1)
        return _seen(builder, seen, data, field, one)

    return ACCUMULATORS(ACCUMULATORS, ACCUMULATORS, ACCUMULATORS, types.int64), generate


@intrinsic
def spread(context, word):
    """A word in every lane."""
    return ACCUMULATORS(types.int64), lambda ctx, b, sig, args: emit.splat(b, args[0], LANES)


@intrinsic
def between(context, sums):
    """The accumulators before the next block."""

    def generate(context, builder, signature, args):
        x = builder.xor(args[0], builder.lshr(args[0], emit.constant(WORDS, 47)))
        return builder.mul(builder.xor(x, BETWEEN), emit.constant(WORDS, PRIME32_1))

    return ACCUMULATORS(ACCUMULATORS), generate


@intrinsic
def together(context, a, b):
    """The sums of two vectors of accumulators."""
    return ACCUMULATORS(ACCUMULATORS, ACCUMULATORS), lambda ctx, b, sig, args: b.add(*args)


@intrinsic
def has_sign(context, seen):
    """Whether any half is negative: some number was not finite."""

    def generate(context, builder, signature, args):
        halves = builder.bitcast(args[0], HALVES)
        signs = builder.bitcast(builder.icmp_signed("<", halves, ir.Constant(HALVES, None)), ir.IntType(16))
        return builder.icmp_unsigned("!=", signs, ir.Constant(signs.type, 0))

    return types.boolean(ACCUMULATORS), generate

"""Rows put between each other: the even elements of a row from one place, the odd ones from another."""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from numba import types
from numba.extending import intrinsic

from ....numerics.engine import emit
from ....numerics.engine.emit import I64, Builder, Value, at
from ....numerics.simd import codegen as simd
from ....numerics.simd.codegen import vector_bytes


def _write_merged(element):
    """The code of `merge_rows`, a vector of each at a time."""
    kind = simd.vector_type(element)
    zero, lanes = emit.constant(kind, 0.0), kind.count
    halves = [[i // 2 + i % 2 * lanes for i in range(first, first + lanes)] for first in (0, lanes)]

    def write(builder: Builder, even: Value, odd: Value, target: Value, evens: Value, odds: Value) -> None:
        def merged(carried):
            sources, out, left = carried[:2], carried[2], carried[3:]
            masks = [emit.lanes_below(builder, count, lanes) for count in left]
            xs = [emit.masked_load(builder, p, mask, zero) for p, mask in zip(sources, masks, strict=True)]
            both = builder.add(*left)
            for v, places in enumerate(halves):
                wanted = emit.lanes_below(builder, builder.sub(both, I64(v * lanes)), lanes)
                there = at(builder, out, v * vector_bytes())
                emit.masked_store(builder, emit.shuffled(builder, places, *xs), there, wanted)
            moved = [at(builder, p, vector_bytes()) for p in sources]
            fewer = [builder.sub(count, I64(lanes)) for count in left]
            return [*moved, at(builder, out, 2 * vector_bytes()), *fewer]

        vectors = builder.sdiv(builder.add(evens, I64(lanes - 1)), I64(lanes))
        simd.loop(builder, vectors, [*(at(builder, a) for a in (even, odd, target)), evens, odds], merged)

    return write


@intrinsic
def merge_rows(context, table, even, odd, target, evens, odds):
    """Write rows of elements of the table's type between each other; there is one odd less than evens, or as many."""

    def generate(context, builder, signature, args):
        element = context.get_data_type(signature.args[0].dtype)
        function = simd.internal(builder.module, f"dgrr.merged.{emit.name_of(element)}", 5, _write_merged(element))
        builder.call(function, args[1:])
        return context.get_dummy_value()

    return types.none(table, *[types.int64] * 5), generate

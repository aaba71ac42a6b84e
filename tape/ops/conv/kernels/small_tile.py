"""The micro-kernel of weight gradients of small groups: the sums of a few taps stay in registers."""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from typing import NamedTuple

from numba import types
from numba.extending import intrinsic

from ....numerics.engine import emit
from ....numerics.engine.emit import I64, Value, at
from ....numerics.engine.numba_internals import counted
from ....numerics.simd import codegen as simd
from ....numerics.simd.codegen import vector_bytes
from .tile import WORD

MANY_TAPS, FEW_TAPS = 9, 4
"""Sums of a tile: of a kernel of 3x3, which fit 16 registers, too, and of what is left of others."""


class TapsTile(NamedTuple):
    """The int64 arguments of a tile of taps for rows of results that lie in one block.

    Addresses of what the first result meets in the image, of the table that says how many vectors behind that a tap
    lies, and of cotangents; how many rows of how many results; bytes in the image from row to row and from result to
    result; addresses of the chains that go on, of the totals to which they are added (0: there is none), and of the
    output; how many taps exist.
    """

    image: Value
    offsets: Value
    cotangents: Value
    rows: Value
    columns: Value
    row: Value
    column: Value
    start: Value
    adds: Value
    out: Value
    taps: Value


def _write_taps(element, height):
    """The code that adds the terms of `TapsTile` to the sums of ``height`` taps; beyond the last one, to its again."""
    kind = simd.vector_type(element)

    def write(builder, *arguments):
        call, vector = TapsTile(*arguments), I64(vector_bytes())
        own = [_least(builder, I64(t), builder.sub(call.taps, I64(1))) for t in range(height)]
        apart = [builder.load(at(builder, call.offsets, builder.mul(t, I64(WORD))), typ=I64) for t in own]
        images = [at(builder, call.image, builder.mul(a, vector)) for a in apart]

        def cells(address):
            places = (at(builder, address, builder.mul(t, vector)) for t in own)
            return [emit.load(builder, place, kind) for place in places]

        def term(carried):
            distance, cotangents, *sums = carried
            g = emit.load(builder, cotangents, kind)
            xs = [emit.load(builder, at(builder, image, distance), kind) for image in images]
            added = [emit.fma(builder, x, g, s) for x, s in zip(xs, sums, strict=True)]
            return [builder.add(distance, call.column), at(builder, cotangents, vector), *added]

        def row(carried):
            return [builder.add(carried[0], call.row), *simd.loop(builder, call.columns, carried, term)[1:]]

        zeros = [emit.constant(kind, 0.0)] * height
        chains = simd.when(builder, emit.present(builder, call.start), zeros, lambda _: cells(call.start))
        sums = simd.loop(builder, call.rows, [I64(0), at(builder, call.cotangents), *chains], row)[2:]

        def added(sums):
            return [builder.fadd(old, new) for old, new in zip(cells(call.adds), sums, strict=True)]

        sums = simd.when(builder, emit.present(builder, call.adds), sums, added)
        for t, total in zip(own, sums, strict=True):
            emit.store(builder, total, at(builder, call.out, builder.mul(t, vector)))

    return write


def _least(builder, a, b):
    return builder.select(builder.icmp_signed("<", a, b), a, b)


@intrinsic(prefer_literal=True)
def compute_taps(context, table, taps, call):
    """Compute one tile of so many taps (a constant) of the table's type; ``call`` is a `TapsTile`."""
    if not isinstance(taps, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, args):
        element, height = context.get_data_type(signature.args[0].dtype), signature.args[1].literal_value
        count, name = len(TapsTile._fields), f"dgrr.taps.{emit.name_of(element)}.{height}"
        function = simd.internal(builder.module, name, count, _write_taps(element, height))
        builder.call(function, [builder.extract_value(args[2], i) for i in range(count)])
        return context.get_dummy_value()

    return types.none(table, taps, call), generate


@intrinsic
def clear_vectors(context, table, target, count):
    """Write ``count`` vectors of +0."""

    def generate(context, builder, signature, args):
        zero = emit.constant(simd.vector_type(context.get_data_type(table.dtype)), 0.0)
        with counted(builder, args[2]) as vector:
            place = at(builder, args[1], builder.mul(vector.index, I64(vector_bytes())))
            emit.store(builder, zero, place)
        return context.get_dummy_value()

    return types.none(table, types.int64, types.int64), generate

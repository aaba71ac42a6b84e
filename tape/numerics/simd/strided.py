"""Elements at any distance in bytes from a pointer, aligned or not, and tiles transposed in registers."""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false
from numba import types
from numba.extending import intrinsic

from ..engine.emit import I64, at, load
from ..engine.numba_internals import ir
from .codegen import transposed
from .lanes import Lanes, inlined
from .parts import get_part, put_part
from .vectors import LANES, bundled, place_of, rolled, size_of

TILES = {1: 16, 4: 16, 8: 8}
"""Rows and columns of a tile, by the size of an element: what fits the registers."""


@intrinsic
def advanced(context, pointer, distance):
    """A pointer moved by a distance in bytes."""
    return pointer(pointer, types.int64), lambda ctx, b, sig, args: at(b, *args)


@intrinsic
def load_at(context, pointer, distance):
    """The element at a distance in bytes from a pointer."""

    def generate(context, builder, signature, args):
        return load(builder, at(builder, *args), context.get_data_type(pointer.dtype), align=1)

    return pointer.dtype(pointer, types.int64), generate


@intrinsic
def load_bundle_at(context, pointer, distance):
    """A bundle at a distance in bytes from a pointer."""
    kind = bundled(pointer)

    def generate(context, builder, signature, args):
        return load(builder, at(builder, *args), context.get_value_type(kind), align=1)

    return kind(pointer, types.int64), generate


@intrinsic
def load_part_at(context, pointer, distance, left):
    """Sixteen lanes of which the first ``left`` hold the elements at a distance in bytes from a pointer."""
    kind = Lanes(pointer.dtype, LANES)

    def generate(context, builder, signature, args):
        place = at(builder, args[0], args[1])
        return get_part(builder, place, args[2], context.get_value_type(kind), 1)

    return kind(pointer, types.int64, types.int64), generate


@intrinsic
def tile(context, x):
    """How many rows and columns a tile of an array's type has: a constant."""
    return types.int64(x), lambda ctx, b, sig, args: I64(TILES[size_of(x)])


@intrinsic
def transpose_tile(context, out, i, pitch, source, stride, m, n):
    """Write one tile: up to ``m`` rows of up to ``n`` elements, ``pitch`` elements apart, from position ``i`` on.

    The source holds its columns, ``stride`` bytes apart.
    """
    lanes = TILES[size_of(out)]

    def generate(context, builder, signature, args):
        array, i, pitch, source, stride, m, n = args
        kind = ir.VectorType(context.get_data_type(out.dtype), lanes)

        def count(line, lines, elements):
            return builder.select(builder.icmp_signed("<", I64(line), lines), elements, I64(0))

        columns = [
            get_part(builder, at(builder, source, builder.mul(stride, I64(j))), count(j, n, m), kind, 1)
            for j in range(lanes)
        ]
        for line, row in enumerate(transposed(builder, columns)):
            place = place_of(context, builder, out, array, builder.add(i, builder.mul(pitch, I64(line))))
            put_part(builder, row, place, count(line, m, n))
        return context.get_dummy_value()

    return types.void(out, i, pitch, source, stride, m, n), generate


@inlined
def transpose_block(out, pitch, source, stride, m, n):
    """Write ``m`` rows of ``n`` elements, ``pitch`` elements apart, tile by tile.

    The source holds their columns, ``stride`` bytes apart, each with its elements side by side.
    """
    for i in range(0, m, tile(out)):
        for j in range(0, n, tile(out)):
            rolled()
            corner = advanced(source, i * out.itemsize + j * stride)
            transpose_tile(out, i * pitch + j, pitch, corner, stride, m - i, n - j)

"""Images: copies of strips of a source in which what a tap reads for neighbouring results lies side by side."""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from typing import NamedTuple

from numba import njit, types
from numba.extending import intrinsic

from ....numerics.engine import emit
from ....numerics.engine.emit import I64, Builder, Value, at
from ....numerics.engine.intrinsics import word
from ....numerics.engine.numba_internals import counted
from ....numerics.simd import codegen as simd
from ....numerics.simd.codegen import vector_bytes
from ....numerics.simd.pack import copy_element, itemsize
from . import words as w


class Planes(NamedTuple):
    """Rows in the planes of some channels and of all taps of the last axis: ``above`` zeros, ``rows``, ``below`` zeros.

    Addresses, strides in bytes and counts; ``starts`` is the address of a table that says, for each tap, which
    element of a row of ``length`` it reads first. It reads ``width`` of them, outside the row zeros.
    """

    source: Value
    source_channel: Value
    source_row: Value
    length: Value
    target: Value
    channel: Value
    plane: Value
    row: Value
    width: Value
    channels: Value
    starts: Value
    taps: Value
    above: Value
    rows: Value
    below: Value


def _write_planes(element, apart):
    """The code that writes `Planes` of elements that lie ``apart`` (1 or 2)."""
    kind = simd.vector_type(element)
    zero, lanes, size = emit.constant(kind, 0.0), kind.count, emit.bytes_of(element)

    def existing(builder, call, first):
        """The lanes of a vector from element ``first`` of a row on that lie in the row."""
        inside = builder.not_(emit.lanes_below(builder, builder.sub(I64(0), first), lanes))
        return builder.and_(inside, emit.lanes_below(builder, builder.sub(call.length, first), lanes))

    def write(builder: Builder, *arguments: Value) -> None:
        call = Planes(*arguments)
        vectors = builder.sdiv(builder.add(call.width, I64(lanes - 1)), I64(lanes))
        with counted(builder, call.taps) as tap, counted(builder, vectors) as vector:
            done, offset = builder.mul(vector.index, I64(lanes)), builder.mul(vector.index, I64(vector_bytes()))
            start = builder.load(at(builder, call.starts, builder.mul(tap.index, I64(8))), typ=I64)
            first = builder.add(start, builder.mul(done, I64(apart)))
            read = [existing(builder, call, builder.add(first, I64(v * lanes))) for v in range(apart)]
            wanted = emit.lanes_below(builder, builder.sub(call.width, done), lanes)
            source = at(builder, call.source, builder.mul(first, I64(size)))
            target = at(builder, at(builder, call.target, builder.mul(tap.index, call.plane)), offset)

            def blank(carried):
                emit.masked_store(builder, zero, carried[0], wanted)
                return [at(builder, carried[0], call.row)]

            def copied(carried):
                places = [at(builder, carried[1], v * vector_bytes()) for v in range(apart)]
                xs = [emit.masked_load(builder, p, mask, zero) for p, mask in zip(places, read, strict=True)]
                x = emit.shuffled(builder, range(0, apart * lanes, apart), *xs) if apart > 1 else xs[0]
                emit.masked_store(builder, x, carried[0], wanted)
                return [at(builder, carried[0], call.row), at(builder, carried[1], call.source_row)]

            def channel(carried):
                source, target = carried
                (end,) = simd.loop(builder, call.above, [target], blank)
                end = simd.loop(builder, call.rows, [end, source], copied)[0]
                simd.loop(builder, call.below, [end], blank)
                return [at(builder, source, call.source_channel), at(builder, target, call.channel)]

            simd.loop(builder, call.channels, [source, target], channel)

    return write


@intrinsic(prefer_literal=True)
def copy_planes(context, table, apart, call):
    """Write `Planes` of elements of the table's type that lie ``apart`` (a constant, 1 or 2) in the source."""
    if not isinstance(apart, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, args):
        element, step = context.get_data_type(signature.args[0].dtype), signature.args[1].literal_value
        count, name = len(Planes._fields), f"dgrr.planes.{step}.{emit.name_of(element)}"
        function = simd.internal(builder.module, name, count, _write_planes(element, step))
        builder.call(function, [builder.extract_value(args[2], i) for i in range(count)])
        return context.get_dummy_value()

    return types.none(table, apart, call), generate


@njit(inline="always")
def _copy_apart(table, call, length, step):
    """The elements that taps read ``step`` apart in rows of ``length``, put into planes of zeros."""
    size = itemsize(table)
    for channel in range(call.channels):
        for tap in range(call.taps):
            start = word(call.starts, tap)
            first = max((step - 1 - start) // step, 0)
            last = min((length - 1 - start) // step + 1, call.width)
            source = call.source + channel * call.source_channel + start * size
            target = call.target + channel * call.channel + tap * call.plane + call.above * call.row
            for j in range(call.rows):
                x, out = source + j * call.source_row, target + j * call.row
                for q in range(first, last):
                    copy_element(table, x + q * step * size, out + q * size)


@njit(inline="always")
def fill_image(table, ints, source, image, sample, group, first, last, strip):
    """Channels ``first`` to ``last`` of the image of a strip of one group of one sample."""
    size, step, inner, width = itemsize(table), word(ints, w.STEP), word(ints, w.INNER), word(ints, w.LAST)
    channel, row = word(ints, w.SOURCE_PLANE) * size, word(ints, w.SOURCE_ROW) * size
    plane, planes = word(ints, w.PLANE) * size, word(ints, w.MIDDLE_TAPS) * word(ints, w.LAST_TAPS)
    top, length, apart = strip * word(ints, w.STRIP), word(ints, w.LAST_SOURCE), word(ints, w.LAST_STEP)
    count, start = min(word(ints, w.ROWS) - top, word(ints, w.STRIP)) + word(ints, w.SPAN), top + word(ints, w.LOWEST)
    begin = source + ((sample * word(ints, w.GROUPS) + group) * word(ints, w.CHANNELS) + first) * channel
    for phase in range(word(ints, w.PHASES)):
        residue = word(ints, word(ints, w.PHASE_TABLE) + phase)
        above = min(max(-start, 0), count)
        stop = max(min((word(ints, w.SOURCE) - 1 - residue) // step + 1 - start, count), above)
        for m in range(word(ints, w.MIDDLE_TAPS) * word(ints, w.MIDDLE)):
            tap, result = m // word(ints, w.MIDDLE), m % word(ints, w.MIDDLE)
            before = word(ints, word(ints, w.MIDDLE_TABLE) + m)
            rows = stop - above if before >= 0 else 0
            place = phase * (word(ints, w.STRIP) + word(ints, w.SPAN)) * inner + result * width
            call = Planes(
                begin + ((start + above) * step + residue) * row + before * size, channel, step * row,
                length if apart <= 2 else 0,
                image + (first * planes + tap * word(ints, w.LAST_TAPS)) * plane + place * size, planes * plane, plane,
                inner * size, width, last - first, ints + 8 * word(ints, w.LAST_TABLE), word(ints, w.LAST_TAPS),
                above, rows, count - above - rows,
            )  # fmt: skip
            if apart == 2:
                copy_planes(table, 2, call)
            else:
                copy_planes(table, 1, call)
            if apart > 2:
                _copy_apart(table, call, length, apart)

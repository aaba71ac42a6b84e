"""Copies of parts of operands in the order in which the micro-kernel reads them best.

A *panel* of b holds the columns of one tile over one block of terms, each row as two vectors, beside each
other. A *block* of a holds rows of one block of terms each, an odd number of cache lines apart, so that the
rows of a tile never compete for the same set of a cache.
"""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from numba import njit, types
from numba.extending import intrinsic

from ..engine import emit
from ..engine.emit import I8, I64, at
from ..engine.numba_internals import counted, ir
from .codegen import CACHE_LINE, internal, transposed, vector_bytes, vector_type
from .sums import CHAIN_BLOCK

PANEL_VECTORS = 2
"""Vectors in a row of a panel."""


def _write_copy(element):
    """Rows of any width, copied as whole vectors; what is beyond the width becomes 0."""
    kind = vector_type(element)
    zero, lanes = emit.constant(kind, 0.0), kind.count

    def write(builder, source, source_row, target, target_row, rows, columns):
        vectors = builder.sdiv(builder.add(columns, I64(lanes - 1)), I64(lanes))
        with counted(builder, rows) as row:
            start = at(builder, source, builder.mul(row.index, source_row))
            end = at(builder, target, builder.mul(row.index, target_row))
            with counted(builder, vectors) as vector:
                offset = builder.mul(vector.index, I64(vector_bytes()))
                mask = emit.lanes_below(builder, builder.sub(columns, builder.mul(vector.index, I64(lanes))), lanes)
                x = emit.masked_load(builder, at(builder, start, offset), mask, zero)
                emit.store(builder, x, at(builder, end, offset))

    return write


def _write_transpose(element):
    """A square of vectors, of which only ``rows`` and ``columns`` are read; the others become 0."""

    def offsets(builder, lanes, source_row, rows):
        exist = [builder.icmp_signed("<", I64(r), rows) for r in range(lanes)]
        return [(e, builder.select(e, builder.mul(I64(r), source_row), I64(0))) for r, e in enumerate(exist)]

    def write(builder, source, source_row, target, target_row, rows, columns):
        lanes = vector_type(element).count
        _transpose(builder, element, source, offsets(builder, lanes, source_row, rows), target, target_row, columns)

    return write


def _write_repeated(element):
    """A square whose rows are each read ``repeat`` times; the first one was ``begun`` times before."""

    def write(builder, source, source_row, target, target_row, rows, columns, begun, repeat):
        offset, places = I64(0), []
        for r in range(vector_type(element).count):
            exists = builder.icmp_signed("<", I64(r), rows)
            places.append((exists, builder.select(exists, offset, I64(0))))
            begun = builder.add(begun, I64(1))
            over = builder.icmp_signed("==", begun, repeat)
            offset = builder.select(over, builder.add(offset, source_row), offset)
            begun = builder.select(over, I64(0), begun)
        _transpose(builder, element, source, places, target, target_row, columns)

    return write


def _transpose(builder, element, source, places, target, target_row, columns):
    """Write the square whose rows exist and lie as ``places`` say."""
    kind = vector_type(element)
    zero, mask, vectors = emit.constant(kind, 0.0), emit.lanes_below(builder, columns, kind.count), []
    for exists, offset in places:
        lanes = emit.lanes_if(builder, exists, mask)
        vectors.append(emit.masked_load(builder, at(builder, source, offset), lanes, zero))
    for r, vector in enumerate(transposed(builder, vectors)):
        emit.store(builder, vector, at(builder, target, builder.mul(I64(r), target_row)))


def _call_of(name, writer):
    """The code of an intrinsic that calls a private function of its int64 arguments."""

    def generate(context, builder, signature, args):
        element = context.get_data_type(signature.args[0].dtype)
        function = internal(builder.module, f"dgrr.{name}.{emit.name_of(element)}", len(args) - 1, writer(element))
        builder.call(function, args[1:])
        return context.get_dummy_value()

    return generate


@intrinsic
def copy_rows(context, table, source, source_row, target, target_row, rows, columns):
    """Copy rows of elements that lie next to each other; the target has room for whole vectors."""
    return types.none(table, *[types.int64] * 6), _call_of("copy", _write_copy)


@intrinsic
def transpose_square(context, table, source, source_row, target, target_row, rows, columns):
    """Write the columns of a square of as many elements each way as a vector holds, of which some exist, as rows."""
    return types.none(table, *[types.int64] * 6), _call_of("transpose", _write_transpose)


@intrinsic
def transpose_repeated(context, table, source, source_row, target, target_row, rows, columns, begun, repeat):
    """`transpose_square` of rows that are each there ``repeat`` times, the first one ``begun`` times less."""
    return types.none(table, *[types.int64] * 8), _call_of("transpose_repeated", _write_repeated)


@intrinsic
def copy_element(context, table, source, target):
    """Copy one element."""

    def generate(context, builder, signature, args):
        x = emit.load(builder, at(builder, args[1]), context.get_data_type(table.dtype))
        emit.store(builder, x, at(builder, args[2]))
        return context.get_dummy_value()

    return types.none(table, types.int64, types.int64), generate


@intrinsic
def itemsize(context, table):
    """Bytes of an element of the table's type."""
    return types.int64(table), lambda context, b, s, args: I64(emit.bytes_of(context.get_data_type(table.dtype)))


@intrinsic
def vector_size(context):
    """Bytes of a vector."""
    return types.int64(), lambda context, builder, signature, args: I64(vector_bytes())


@intrinsic
def panel_memory(context):
    """Address of room for a panel on the stack of the calling function; its contents are junk."""

    def generate(context, builder, signature, args):
        with builder.goto_entry_block():  # numba's own alloca_once would fill it with zeros
            area = builder.alloca(ir.ArrayType(I8, CHAIN_BLOCK * PANEL_VECTORS * vector_bytes()))
        area.align = CACHE_LINE
        return builder.ptrtoint(area, I64)

    return types.int64(), generate


@njit(inline="always")
def pack_panel(table, b, row, column, depth, width, panel):
    """``depth`` rows of ``width`` elements of b as rows of a panel."""
    size, pitch = itemsize(table), PANEL_VECTORS * vector_size()
    lanes = vector_size() // size
    if column == size:
        copy_rows(table, b, row, panel, pitch, depth, width)
    elif row == size:
        for j in range(0, width, lanes):  # lines of b are read to their end, which a CPU fetches ahead
            for k in range(0, depth, lanes):
                square = panel + k * pitch + j * size
                transpose_square(table, b + k * row + j * column, column, square, pitch, width - j, depth - k)
    else:
        for k in range(depth):
            for j in range(width):
                copy_element(table, b + k * row + j * column, panel + k * pitch + j * size)


@njit(inline="always")
def block_pitch(table):
    """Bytes from row to row of a block."""
    return CHAIN_BLOCK * itemsize(table) + CACHE_LINE


@njit(inline="always")
def pack_block(table, a, row, column, rows, depth, block):
    """``rows`` of ``depth`` elements of a as rows of a block; either the rows or the columns of a are contiguous."""
    size, pitch = itemsize(table), block_pitch(table)
    lanes = vector_size() // size
    if column == size:
        copy_rows(table, a, row, block, pitch, rows, depth)
    else:
        for k in range(0, depth, lanes):  # lines of a are read to their end, which a CPU fetches ahead
            for i in range(0, rows, lanes):
                square = block + i * pitch + k * size
                transpose_square(table, a + i * row + k * column, column, square, pitch, depth - k, rows - i)

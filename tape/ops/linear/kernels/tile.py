"""The micro-kernel of matrix products: a tile of outputs whose sums stay in registers over one block of terms.

A tile is one or two vectors wide and a few rows high. Each round of its loop takes one term of every sum: it
multiplies the vectors of one row of b by one element of each row of a. What happens to the finished sums is
written without branches: what is absent is replaced by what changes nothing, -0 for a term and 1 for a mask.
"""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import NamedTuple

from numba import types
from numba.extending import intrinsic

from ....numerics.engine import emit
from ....numerics.engine.emit import I64, Builder, Value, at
from ....numerics.simd import codegen as simd
from ....numerics.simd.codegen import vector_bytes

TALL, MIDDLE, SHORT, NARROW = range(4)
"""The tiles: three heights of two vectors, and one vector."""

CLAMPED = 8
"""Up to this height a tile has a pointer for each row of a, and may have fewer rows than its height."""

APART = 3
"""Rows of a per pointer in higher tiles: a CPU's addressing reaches the next and the one after by itself."""


class TileCall(NamedTuple):
    """The int64 arguments of a micro-kernel: addresses (0 for what is absent), strides in bytes, counts, flags."""

    a: Value
    a_row: Value
    a_column: Value
    b: Value
    b_row: Value
    depth: Value
    out: Value
    out_row: Value
    rows: Value
    columns: Value
    adds: Value
    bias: Value
    relu: Value
    mask: Value
    addend: Value
    addend_row: Value


def shape(tile: int) -> tuple[int, int]:
    """Height and vectors of a tile, whose sums leave registers for a row of b: AVX-512 has 32 of them, others 16."""
    tall = ((12, 2), (8, 2), (4, 2)) if vector_bytes() == 64 else ((6, 2), (4, 2), (2, 2))
    return (*tall, (8, 1))[tile]


@dataclass(frozen=True)
class _ProductTile:
    """The writer of one micro-kernel."""

    builder: Builder
    call: TileCall
    kind: Value
    height: int
    vectors: int

    def write(self) -> None:
        out = self.cells(self.call.out, self.call.out_row)
        for pointer in out:  # needed after the loop, which takes its time
            emit.prefetch_to_write(self.builder, pointer)
        builder, call, sums = self.builder, self.call, self.sums()
        totals = simd.when(builder, emit.present(builder, call.adds), sums, partial(self.totals, out))
        wanted = emit.present(builder, reduce(builder.or_, (call.bias, call.relu, call.mask, call.addend)))
        finished = simd.when(builder, wanted, totals, self.finished)
        for i, (value, pointer) in enumerate(zip(finished, out, strict=True)):
            emit.masked_store(self.builder, value, pointer, self.valid(i))

    def valid(self, i: int) -> Value:
        """The lanes of the ``i``-th vector that exist."""
        lanes = self.kind.count
        return emit.lanes_below(self.builder, self.call.columns, lanes, i % self.vectors * lanes)

    def rows(self, address: Value, stride: Value) -> list[Value]:
        """Pointers to the rows; beyond the last one, to the last one again, where the same is then done twice."""
        builder, pointers = self.builder, [at(self.builder, address)]
        for r in range(1, self.height):
            step = stride
            if self.height <= CLAMPED:
                step = builder.select(builder.icmp_signed(">", self.call.rows, I64(r)), stride, I64(0))
            pointers.append(at(builder, pointers[-1], step))
        return pointers

    def cells(self, address: Value, stride: Value) -> list[Value]:
        """Pointers to all vectors of the tile in an array like the output."""
        rows = self.rows(address, stride)
        return [at(self.builder, row, v * vector_bytes()) for row in rows for v in range(self.vectors)]

    def sums(self) -> list[Value]:
        """The chains of the block, each from +0."""
        builder, call = self.builder, self.call
        starts = self.rows(call.a, call.a_row)
        starts = starts if self.height <= CLAMPED else starts[::APART]
        zeros = [emit.constant(self.kind, 0.0)] * (self.height * self.vectors)
        double = builder.shl(call.a_row, I64(1))

        def term(carried: Sequence[Value]) -> list[Value]:
            b, *rest = carried
            pointers, sums = rest[: len(starts)], rest[len(starts) :]
            next_ones = [at(builder, b, call.b_row), *(at(builder, p, call.a_column) for p in pointers)]
            if self.height > CLAMPED:
                pointers = [at(builder, p, s) for p in pointers for s in (0, call.a_row, double)]
            return next_ones + self.products(pointers, b, sums)

        return simd.loop(builder, call.depth, [at(builder, call.b), *starts, *zeros], term)[1 + len(starts) :]

    def products(self, rows: Sequence[Value], b: Value, sums: Sequence[Value]) -> list[Value]:
        """Every sum with one more term."""
        builder, kind = self.builder, self.kind
        bs = [emit.load(builder, at(builder, b, v * vector_bytes()), kind) for v in range(self.vectors)]
        factors = [emit.splat(builder, emit.load(builder, row, kind.element), kind.count) for row in rows]
        return [
            emit.fma(builder, factors[i // self.vectors], bs[i % self.vectors], total) for i, total in enumerate(sums)
        ]

    def totals(self, out: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
        """The sums added to what earlier blocks left in the output; all of it is read before any is written."""
        builder, zero = self.builder, emit.constant(self.kind, 0.0)
        before = [emit.masked_load(builder, pointer, self.valid(i), zero) for i, pointer in enumerate(out)]
        return [builder.fadd(old, new) for old, new in zip(before, sums, strict=True)]

    def finished(self, totals: Sequence[Value]) -> list[Value]:
        """The totals after bias, relu, mask and addend, as far as there are any."""
        builder, zero = self.builder, emit.constant(self.kind, 0.0)
        relu = emit.splat(builder, emit.present(builder, self.call.relu), self.kind.count)
        bias = self.optional(self.call.bias, -0.0, self.bias_vectors)
        mask = self.optional(self.call.mask, 1.0, partial(self.cells, stride=self.call.out_row))
        addend = self.optional(self.call.addend, -0.0, partial(self.cells, stride=self.call.addend_row))
        done: list[Value] = []
        for i, total in enumerate(totals):
            x = builder.fadd(total, bias[i % self.vectors])
            x = builder.select(builder.and_(relu, builder.fcmp_ordered("<=", x, zero)), zero, x)
            x = builder.select(builder.fcmp_ordered(">", mask[i], zero), x, zero)
            done.append(builder.fadd(addend[i], x))
        return done

    def bias_vectors(self, address: Value) -> list[Value]:
        """Pointers to the bias of the tile's columns."""
        return [at(self.builder, address, v * vector_bytes()) for v in range(self.vectors)]

    def optional(self, address: Value, otherwise: float, pointers: Callable[[Value], list[Value]]) -> list[Value]:
        """The vectors at an address; if it is 0, vectors of ``otherwise``."""
        builder, given = self.builder, emit.present(self.builder, address)
        readable = builder.select(given, address, self.call.out)  # a CPU may be slow to skip what cannot be read
        default = emit.constant(self.kind, otherwise)
        return [
            emit.masked_load(builder, pointer, emit.lanes_if(builder, given, self.valid(i)), default)
            for i, pointer in enumerate(pointers(readable))
        ]


def micro_kernel(module: Value, element: Value, tile: int) -> Value:
    """The function that computes a tile; its arguments are those of `TileCall`."""
    height, vectors = shape(tile)
    kind = simd.vector_type(element)

    def write(builder: Builder, *arguments: Value) -> None:
        _ProductTile(builder, TileCall(*arguments), kind, height, vectors).write()

    name = f"dgrr.tile.{emit.name_of(element)}.{height}x{vectors}"
    return simd.internal(module, name, len(TileCall._fields), write)


@intrinsic(prefer_literal=True)
def compute_tile(context, table, tile, call):
    """Compute one tile (a constant) of elements of the table's type; ``call`` is a `TileCall`."""
    if not isinstance(tile, types.IntegerLiteral):
        return None

    def generate(context, builder, signature, args):
        element = context.get_data_type(table.dtype)
        function = micro_kernel(builder.module, element, tile.literal_value)
        builder.call(function, [builder.extract_value(args[2], i) for i in range(len(TileCall._fields))])
        return context.get_dummy_value()

    return types.none(table, tile, call), generate


@intrinsic(prefer_literal=True)
def rows_of(context, tile):
    """The height of a tile (a constant)."""
    if not isinstance(tile, types.IntegerLiteral):
        return None
    return types.int64(tile), lambda context, builder, signature, args: I64(shape(tile.literal_value)[0])

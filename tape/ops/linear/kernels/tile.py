"""The micro-kernel of matrix products: a tile of outputs whose sums stay in registers over one block of terms.

A tile is one or two vectors wide and a few rows high, or one row of many. Each round of its loop takes one term of
every sum: it multiplies the vectors of one row of b by one element of each row of a.
"""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from numba import types
from numba.extending import intrinsic

from ....numerics.engine import emit
from ....numerics.engine.emit import I64, Builder, Value, at
from ....numerics.simd import codegen as simd
from ....numerics.simd.codegen import vector_bytes

TALL, MIDDLE, SHORT, NARROW, WIDE = range(5)
"""The tiles: three heights of two vectors, one vector, and one row of many: b is read as it lies, long pieces of it."""

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
    if vector_bytes() == 64:
        return ((12, 2), (8, 2), (4, 2), (8, 1), (1, 16))[tile]
    return ((6, 2), (4, 2), (2, 2), (8, 1), (1, 8))[tile]


@dataclass(frozen=True)
class ProductTile:
    """The writer of one micro-kernel."""

    builder: Builder
    call: TileCall
    kind: Value
    height: int
    vectors: int

    def write(self) -> None:
        """Write the sums, what follows them and the stores."""
        out = self.cells(self.call.out, self.call.out_row)
        self.prefetch(out)
        builder, call, sums = self.builder, self.call, self.sums()
        totals = simd.when(builder, emit.present(builder, call.adds), sums, partial(self.totals, out))
        for i, (value, pointer) in enumerate(zip(self.finished(totals), out, strict=True)):
            emit.masked_store(self.builder, value, pointer, self.valid(i))

    def prefetch(self, out: Sequence[Value]) -> None:
        """Ask for the output, needed after the loop, which takes its time."""
        for pointer in out:
            emit.prefetch_to_write(self.builder, pointer)

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
        builder, call, starts = self.builder, self.call, self.starts()
        zeros = [emit.constant(self.kind, 0.0)] * (self.height * self.vectors)

        def term(carried: Sequence[Value]) -> list[Value]:
            b, *rest = carried
            pointers, sums = rest[: len(starts)], rest[len(starts) :]
            next_ones = [at(builder, b, call.b_row), *(at(builder, p, call.a_column) for p in pointers)]
            return next_ones + self.products(self.factors(pointers), b, sums)

        return simd.loop(builder, call.depth, [at(builder, call.b), *starts, *zeros], term)[1 + len(starts) :]

    def starts(self) -> list[Value]:
        """The pointers into a that go from term to term."""
        rows = self.rows(self.call.a, self.call.a_row)
        return rows if self.height <= CLAMPED else rows[::APART]

    def factors(self, pointers: Sequence[Value]) -> list[Value]:
        """Where the elements of a of a term lie, one in each row."""
        if self.height <= CLAMPED:
            return list(pointers)
        row = self.call.a_row
        return [at(self.builder, p, step) for p in pointers for step in (0, row, self.builder.shl(row, I64(1)))]

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
        before = self.read(out, emit.constant(self.kind, 0.0))
        return [self.builder.fadd(old, new) for old, new in zip(before, sums, strict=True)]

    def finished(self, totals: Sequence[Value]) -> list[Value]:
        """The totals after bias, relu, mask and addend, as far as there are any."""
        builder, call, zero = self.builder, self.call, emit.constant(self.kind, 0.0)

        def biased(xs: Sequence[Value]) -> list[Value]:
            bias = self.read(self.bias_vectors(), emit.constant(self.kind, -0.0))
            return [builder.fadd(x, bias[i % self.vectors]) for i, x in enumerate(xs)]

        def rectified(xs: Sequence[Value]) -> list[Value]:
            return [builder.select(builder.fcmp_ordered("<=", x, zero), zero, x) for x in xs]

        def masked(xs: Sequence[Value]) -> list[Value]:
            mask = self.read(self.cells(call.mask, call.out_row), zero)
            return [builder.select(builder.fcmp_ordered(">", m, zero), x, zero) for m, x in zip(mask, xs, strict=True)]

        def added(xs: Sequence[Value]) -> list[Value]:
            addend = self.read(self.cells(call.addend, call.addend_row), zero)
            return [builder.fadd(more, x) for more, x in zip(addend, xs, strict=True)]

        for given, step in ((call.bias, biased), (call.relu, rectified), (call.mask, masked), (call.addend, added)):
            totals = simd.when(builder, emit.present(builder, given), totals, step)
        return list(totals)

    def read(self, pointers: Sequence[Value], otherwise: Value) -> list[Value]:
        """The vectors at the pointers; ``otherwise`` where there is nothing."""
        return [emit.masked_load(self.builder, pointer, self.valid(i), otherwise) for i, pointer in enumerate(pointers)]

    def bias_vectors(self) -> list[Value]:
        """Pointers to the bias of the tile's columns."""
        return [at(self.builder, self.call.bias, v * vector_bytes()) for v in range(self.vectors)]


def micro_kernel(module: Value, element: Value, tile: int) -> Value:
    """The function that computes a tile; its arguments are those of `TileCall`."""
    height, vectors = shape(tile)
    kind = simd.vector_type(element)

    def write(builder: Builder, *arguments: Value) -> None:
        ProductTile(builder, TileCall(*arguments), kind, height, vectors).write()

    name = f"dgrr.tile.{emit.name_of(element)}.{height}x{vectors}"
    return simd.internal(module, name, len(TileCall._fields), write)


def computing(written: Callable[[Value, Value, int], Value]) -> Any:
    """An intrinsic that calls what is ``written(module, element, constant)``, for elements of its table's type.

    Its arguments are the table, the constant and a `TileCall`.
    """

    @intrinsic(prefer_literal=True)
    def compute(context, table, constant, call):
        if not isinstance(constant, types.IntegerLiteral):
            return None

        def generate(context, builder, signature, args):
            function = written(builder.module, context.get_data_type(table.dtype), constant.literal_value)
            builder.call(function, [builder.extract_value(args[2], i) for i in range(len(TileCall._fields))])
            return context.get_dummy_value()

        return types.none(table, constant, call), generate

    return compute


compute_tile = computing(micro_kernel)
"""Computes one tile, by its number."""


def _constant_of(tile, axis):
    if not isinstance(tile, types.IntegerLiteral):
        return None
    return types.int64(tile), lambda context, builder, signature, args: I64(shape(tile.literal_value)[axis])


@intrinsic(prefer_literal=True)
def rows_of(context, tile):
    """The height of a tile (a constant)."""
    return _constant_of(tile, 0)


@intrinsic(prefer_literal=True)
def vectors_of(context, tile):
    """The vectors in a row of a tile (a constant)."""
    return _constant_of(tile, 1)

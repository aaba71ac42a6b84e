"""The micro-kernels of convolutions: tiles of sums that stay in registers.

Each round of a loop takes one term of every sum: vectors times one number for each row. For results the vectors
come from an image, each term where a table says, and the numbers from packed weights. For weight gradients the
vectors are cotangents, and the numbers come from an image, each row where the table says.
"""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from numba import types
from numba.extending import intrinsic

from ....numerics.engine import emit
from ....numerics.engine.emit import I64, Builder, Value, at
from ....numerics.simd import codegen as simd
from ....numerics.simd.codegen import vector_bytes
from ....numerics.simd.sums import CHAIN_BLOCK

TALL, SHORT, NARROW, LONG, HALF = range(5)
"""The tiles: two heights of two vectors, one vector, and for a single row many vectors and half as many."""

WORD = 8
"""Bytes of an entry of a table."""


TALL_ROWS, SHORT_ROWS = (12, 6), 4
"""Heights: of tall tiles with AVX-512, which has 32 registers, and with others, which have 16; of short ones."""

ROW_VECTORS = 8
"""Vectors of a single row: as many sums as a multiplication takes cycles, twice."""


def shape(tile: int) -> tuple[int, int]:
    """Height and vectors of a tile, whose sums leave registers for a term."""
    tall = TALL_ROWS[vector_bytes() != 64]
    return ((tall, 2), (SHORT_ROWS, 2), (tall, 1), (1, ROW_VECTORS), (1, ROW_VECTORS // 2))[tile]


def tiles(outputs: int, tall: int, short: int) -> tuple[int, int]:
    """How many tiles of these heights hold the outputs of a group, with few rows left over."""
    rest = (outputs % tall + short - 1) // short
    if rest * short >= tall:
        return outputs // tall + 1, 0
    return outputs // tall, rest


class ResultTile(NamedTuple):
    """The int64 arguments of a tile of results; ``bias`` is 0 if there is none.

    Addresses of packed weights, image, offsets in it, output and bias; how many terms; bytes from row to row of
    the output; how many rows and columns exist.
    """

    weights: Value
    image: Value
    offsets: Value
    terms: Value
    out: Value
    row: Value
    rows: Value
    columns: Value
    bias: Value


class WeightTile(NamedTuple):
    """The int64 arguments of a tile of weight gradients for some terms of one block.

    Addresses of image, offsets of the rows in it, cotangents; how many terms; addresses of the chains that go on,
    of the totals to which the chains are added, of the output, of which the first two are 0 where there is nothing;
    bytes from row to row of these; how many rows and columns exist.
    """

    image: Value
    offsets: Value
    cotangents: Value
    depth: Value
    start: Value
    adds: Value
    out: Value
    row: Value
    rows: Value
    columns: Value


@dataclass(frozen=True)
class _Tile:
    """The writer of a micro-kernel."""

    builder: Builder
    call: Any
    kind: Value
    height: int
    vectors: int

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return emit.bytes_of(self.kind)

    def cells(self, value: float) -> list[Value]:
        """One value in all vectors of the tile."""
        return [emit.constant(self.kind, value)] * (self.height * self.vectors)

    def rows(self, address: Value, stride: Value) -> list[Value]:
        """Pointers to the rows; beyond the last one, to the last one again, where the same is then done twice."""
        builder, pointers = self.builder, [at(self.builder, address)]
        for r in range(1, self.height):
            step = builder.select(builder.icmp_signed(">", self.call.rows, I64(r)), stride, I64(0))
            pointers.append(at(builder, pointers[-1], step))
        return pointers

    def places(self, address: Value) -> list[Value]:
        """Pointers to all vectors of the tile in an array like the output."""
        rows = self.rows(address, self.call.row)
        return [at(self.builder, row, v * vector_bytes()) for row in rows for v in range(self.vectors)]

    def valid(self, i: int) -> Value:
        """The lanes of the ``i``-th vector that exist."""
        lanes = self.kind.count
        return emit.lanes_below(self.builder, self.call.columns, lanes, i % self.vectors * lanes)

    def load(self, address: Value) -> list[Value]:
        """The tile in an array like the output."""
        zero = emit.constant(self.kind, 0.0)
        return [emit.masked_load(self.builder, p, self.valid(i), zero) for i, p in enumerate(self.places(address))]

    def store(self, cells: Sequence[Value]) -> None:
        """Write what exists of the tile."""
        for i, (value, place) in enumerate(zip(cells, self.places(self.call.out), strict=True)):
            emit.masked_store(self.builder, value, place, self.valid(i))

    def products(self, numbers: Sequence[Value], vectors: Value, sums: Sequence[Value]) -> list[Value]:
        """Every sum with one more term: pointers to the numbers of the rows, and to the vectors."""
        builder, kind = self.builder, self.kind
        bs = [emit.load(builder, at(builder, vectors, v * vector_bytes()), kind) for v in range(self.vectors)]
        factors = [emit.splat(builder, emit.load(builder, p, kind.element), kind.count) for p in numbers]
        return [
            emit.fma(builder, factors[i // self.vectors], bs[i % self.vectors], total) for i, total in enumerate(sums)
        ]


class _ResultTile(_Tile):
    """All terms of the results, block by block."""

    call: ResultTile

    def write(self) -> None:
        builder, call = self.builder, self.call
        blocks = builder.sdiv(builder.add(call.terms, I64(CHAIN_BLOCK - 1)), I64(CHAIN_BLOCK))
        blocks = builder.select(emit.present(builder, blocks), blocks, I64(1))  # no term makes +0
        start = [at(builder, call.weights), at(builder, call.offsets), call.terms, *self.cells(-0.0)]
        totals = simd.loop(builder, blocks, start, self.block)[3:]
        self.store(simd.when(builder, emit.present(builder, call.bias), totals, self.biased))

    def block(self, carried: Sequence[Value]) -> list[Value]:
        """The totals with one more block; they begin with -0, which leaves the first block's sum as it is."""
        builder, (weights, offsets, left, *totals) = self.builder, carried
        last = builder.icmp_signed("<", left, I64(CHAIN_BLOCK))
        depth = builder.select(last, left, I64(CHAIN_BLOCK))
        weights, offsets, *sums = simd.loop(builder, depth, [weights, offsets, *self.cells(0.0)], self.term)
        added = [builder.fadd(total, part) for total, part in zip(totals, sums, strict=True)]
        return [weights, offsets, builder.sub(left, depth), *added]

    def term(self, carried: Sequence[Value]) -> list[Value]:
        builder, (weights, offsets, *sums) = self.builder, carried
        vectors = at(builder, self.call.image, builder.load(offsets, typ=I64))
        numbers = [at(builder, weights, r * self.size) for r in range(self.height)]
        added = self.products(numbers, vectors, sums)
        packed = max(self.height, SHORT_ROWS)  # a single row is packed as a short tile
        return [at(builder, weights, packed * self.size), at(builder, offsets, WORD), *added]

    def biased(self, totals: Sequence[Value]) -> list[Value]:
        """The totals with the bias of their rows."""
        builder, kind = self.builder, self.kind
        numbers = [emit.load(builder, p, kind.element) for p in self.rows(self.call.bias, I64(self.size))]
        rows = [emit.splat(builder, number, kind.count) for number in numbers]
        return [builder.fadd(total, rows[i // self.vectors]) for i, total in enumerate(totals)]


class _WeightTile(_Tile):
    """Some terms of weight gradients, which all lie in one block."""

    call: WeightTile

    def write(self) -> None:
        builder, call = self.builder, self.call
        table = self.rows(call.offsets, I64(WORD))
        rows = [at(builder, call.image, builder.load(p, typ=I64)) for p in table]
        chains = simd.when(builder, emit.present(builder, call.start), self.cells(0.0), lambda _: self.load(call.start))

        def term(carried: Sequence[Value]) -> list[Value]:
            distance, cotangents, *sums = carried
            added = self.products([at(builder, row, distance) for row in rows], cotangents, sums)
            return [builder.add(distance, I64(self.size)), at(builder, cotangents, 2 * vector_bytes()), *added]

        sums = simd.loop(builder, call.depth, [I64(0), at(builder, call.cotangents), *chains], term)[2:]
        self.store(simd.when(builder, emit.present(builder, call.adds), sums, self.added))

    def added(self, sums: Sequence[Value]) -> list[Value]:
        """The sums of a block added to the totals before it."""
        return [self.builder.fadd(old, new) for old, new in zip(self.load(self.call.adds), sums, strict=True)]


def _generate(name, arguments, writer):
    """The code of an intrinsic that computes a tile (a constant)."""

    def generate(context, builder, signature, args):
        element = context.get_data_type(signature.args[0].dtype)
        height, vectors = shape(signature.args[1].literal_value)

        def write(inner, *values):
            writer(inner, arguments(*values), simd.vector_type(element), height, vectors).write()

        count = len(arguments._fields)
        full = f"dgrr.{name}.{emit.name_of(element)}.{height}x{vectors}"
        function = simd.internal(builder.module, full, count, write)
        builder.call(function, [builder.extract_value(args[2], i) for i in range(count)])
        return context.get_dummy_value()

    return generate


@intrinsic(prefer_literal=True)
def compute_results(context, table, tile, call):
    """Compute one tile (a constant) of results of the table's type; ``call`` is a `ResultTile`."""
    if not isinstance(tile, types.IntegerLiteral):
        return None
    return types.none(table, tile, call), _generate("results", ResultTile, _ResultTile)


@intrinsic(prefer_literal=True)
def compute_weights(context, table, tile, call):
    """Compute one tile (a constant) of weight gradients of the table's type; ``call`` is a `WeightTile`."""
    if not isinstance(tile, types.IntegerLiteral):
        return None
    return types.none(table, tile, call), _generate("weights", WeightTile, _WeightTile)


@intrinsic(prefer_literal=True)
def height_of(context, tile):
    """The height of a tile (a constant)."""
    if not isinstance(tile, types.IntegerLiteral):
        return None
    return types.int64(tile), lambda context, builder, signature, args: I64(shape(tile.literal_value)[0])

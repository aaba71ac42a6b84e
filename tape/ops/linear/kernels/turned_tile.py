"""The micro-kernel of few rows by a matrix whose columns lie side by side: weights of a layer, and one sample.

Copied as a panel such a matrix would be written and read once more, for so few products. Squares of it are transposed
in registers instead and multiplied there.
"""

# llvmlite carries few types.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from collections.abc import Sequence
from dataclasses import dataclass

from ....numerics.engine import emit
from ....numerics.engine.emit import I64, Builder, Value, at
from ....numerics.simd import codegen as simd
from .tile import ProductTile, TileCall, computing

FEW_TURNED = 4
"""Rows for which copying such a matrix costs more than it saves."""


@dataclass(frozen=True)
class _TurnedTile(ProductTile):
    """A tile of one vector that takes as many terms at once; ``b_row`` are the bytes from column to column."""

    def sums(self) -> list[Value]:
        """The chains of the block, each from +0."""
        builder, call, lanes = self.builder, self.call, self.kind.count
        zeros = [emit.constant(self.kind, 0.0)] * self.height

        def square(carried: Sequence[Value]) -> list[Value]:
            b, rows, sums = carried[0], carried[1 : 1 + self.height], carried[1 + self.height :]
            columns = [at(builder, b, builder.mul(call.b_row, I64(lane))) for lane in range(lanes)]
            vectors = [emit.load(builder, column, self.kind) for column in columns]
            for term in simd.transposed(builder, vectors):
                factors = [emit.splat(builder, emit.load(builder, row, self.kind.element), lanes) for row in rows]
                sums = [emit.fma(builder, a, term, total) for a, total in zip(factors, sums, strict=True)]
                rows = [at(builder, row, call.a_column) for row in rows]
            return [at(builder, b, simd.vector_bytes()), *rows, *sums]

        starts = [at(builder, call.b), *self.rows(call.a, call.a_row)]
        squares = builder.sdiv(call.depth, I64(lanes))
        return simd.loop(builder, squares, [*starts, *zeros], square)[len(starts) :]


def turned_rows(module: Value, element: Value, height: int) -> Value:
    """The function that computes a tile of a height; its arguments are those of `TileCall`."""
    kind = simd.vector_type(element)

    def write(builder: Builder, *arguments: Value) -> None:
        _TurnedTile(builder, TileCall(*arguments), kind, height, 1).write()

    name = f"dgrr.turned.{emit.name_of(element)}.{height}"
    return simd.internal(module, name, len(TileCall._fields), write)


compute_turned_rows = computing(turned_rows)
"""Computes one tile, by its height."""

"""The micro-kernel of rows of half a vector: registers half as wide, no masks, and all rows in one call."""

# The signature that numba asks of an intrinsic's code generator leaves arguments unused.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from collections.abc import Sequence
from dataclasses import dataclass

from numba import types
from numba.extending import intrinsic

from ....numerics.engine import emit
from ....numerics.engine.emit import I64, Builder, Value, at
from ....numerics.engine.numba_internals import ir
from ....numerics.simd import codegen as simd
from .tile import NARROW, ProductTile, TileCall, call_tile, shape

ALONE = (3, 5, 7)
"""Multiples of a stride that have a register: a CPU's addressing reaches the others, up to 7, from these and from 1."""


@dataclass(frozen=True)
class _NarrowTile(ProductTile):
    """A tile of which every row and column exists."""

    steps: Sequence[Value]
    """Bytes from the first row of a to each."""

    def prefetch(self, out: Sequence[Value]) -> None:
        """Nothing: small arrays lie near."""

    def valid(self, i: int) -> Value:
        """All lanes."""
        return emit.constant(ir.VectorType(emit.I1, self.kind.count), True)

    def rows(self, address: Value, stride: Value) -> list[Value]:
        """Pointers to the rows."""
        pointers = [at(self.builder, address)]
        for _ in range(1, self.height):
            pointers.append(at(self.builder, pointers[-1], stride))
        return pointers

    def starts(self) -> list[Value]:
        """One pointer goes from term to term."""
        return [at(self.builder, self.call.a)]

    def factors(self, pointers: Sequence[Value]) -> list[Value]:
        """Where the elements of a of a term lie, one in each row."""
        return [at(self.builder, pointers[0], step) for step in self.steps]


def _multiples(builder: Builder, stride: Value, count: int) -> list[Value]:
    """So many multiples of a stride, from none on, in few registers.

    LLVM would count rows up in the loop, each from the one before, and the sums would wait for that. It cannot where it
    does not see what some of them are: behind an empty piece of assembly.
    """
    steps, same = [builder.mul(stride, I64(r)) for r in range(count)], ir.FunctionType(I64, [I64])
    for r in ALONE:
        steps[r] = builder.asm(same, "", "=r,0", [steps[r]], side_effect=False)
    return [builder.shl(steps[3], I64(1)) if r == 6 else step for r, step in enumerate(steps)]


def narrow_tiles(module: Value, element: Value) -> Value:
    """The function that computes as many rows of half a vector as fill tiles; its arguments are those of `TileCall`."""
    height, vectors = shape(NARROW)
    kind = ir.VectorType(element, simd.vector_type(element).count // 2)

    def write(builder: Builder, *arguments: Value) -> None:
        call = TileCall(*arguments)
        moves = [builder.mul(row, I64(height)) for row in (call.a_row, call.out_row, call.out_row, call.addend_row)]
        steps = _multiples(builder, call.a_row, height)

        def tile(carried: Sequence[Value]) -> list[Value]:
            a, out, mask, addend = carried
            here = call._replace(a=a, out=out, mask=mask, addend=addend)
            _NarrowTile(builder, here, kind, height, vectors, steps).write()
            return [_advanced(builder, x, move) for x, move in zip(carried, moves, strict=True)]

        simd.loop(builder, builder.sdiv(call.rows, I64(height)), [call.a, call.out, call.mask, call.addend], tile)

    return simd.internal(module, f"dgrr.narrow.{emit.name_of(element)}", len(TileCall._fields), write)


def _advanced(builder: Builder, address: Value, distance: Value) -> Value:
    """An address moved by a distance in bytes; what is absent stays so."""
    return builder.select(emit.present(builder, address), builder.add(address, distance), address)


@intrinsic
def compute_narrow_tiles(context, table, call):
    """Compute as many rows of half a vector as fill tiles; ``call`` is a `TileCall`."""

    def generate(context, builder, signature, args):
        call_tile(builder, narrow_tiles(builder.module, context.get_data_type(table.dtype)), args[1])
        return context.get_dummy_value()

    return types.none(table, call), generate

"""The micro-kernel of rows of one vector or a half: registers as wide as a row, no masks, and all rows in one call."""

# llvmlite carries few types.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
from collections.abc import Sequence
from dataclasses import dataclass

from ....numerics.engine import emit
from ....numerics.engine.emit import I64, Builder, Value, at
from ....numerics.engine.numba_internals import ir
from ....numerics.simd import codegen as simd
from .tile import NARROW, ProductTile, TileCall, computing, shape

ALONE = (3, 5, 7)
"""Multiples of a stride that have a register: a CPU's addressing reaches the others, up to 7, from these and from 1."""


@dataclass(frozen=True)
class _NarrowTile(ProductTile):
    """A tile of which every column exists."""

    def prefetch(self, out: Sequence[Value]) -> None:
        """Nothing: small arrays lie near."""

    def valid(self, i: int) -> Value:
        """All lanes."""
        return emit.constant(ir.VectorType(emit.I1, self.kind.count), True)


@dataclass(frozen=True)
class _WholeTile(_NarrowTile):
    """A tile of which every row exists, too."""

    steps: Sequence[Value]
    """Bytes from the first row of a to each."""

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


def narrow_rows(module: Value, element: Value, part: int) -> Value:
    """The function that computes rows of a vector's ``part``-th; its arguments are those of `TileCall`."""
    height, vectors = shape(NARROW)
    kind = ir.VectorType(element, simd.vector_type(element).count // part)

    def write(builder: Builder, *arguments: Value) -> None:
        call = TileCall(*arguments)
        moves = [builder.mul(row, I64(height)) for row in (call.a_row, call.out_row, call.out_row, call.addend_row)]
        steps = _multiples(builder, call.a_row, height)

        def here(places: Sequence[Value]) -> TileCall:
            a, out, mask, addend = places
            return call._replace(a=a, out=out, mask=mask, addend=addend)

        def tile(places: Sequence[Value]) -> list[Value]:
            _WholeTile(builder, here(places), kind, height, vectors, steps).write()
            return [_advanced(builder, place, move) for place, move in zip(places, moves, strict=True)]

        whole = builder.sdiv(call.rows, I64(height))
        behind = simd.loop(builder, whole, [call.a, call.out, call.mask, call.addend], tile)
        left = builder.sub(call.rows, builder.mul(whole, I64(height)))
        with builder.if_then(emit.present(builder, left)):
            _NarrowTile(builder, here(behind)._replace(rows=left), kind, height, vectors).write()

    return simd.internal(module, f"dgrr.narrow.{emit.name_of(kind)}", len(TileCall._fields), write)


def _advanced(builder: Builder, address: Value, distance: Value) -> Value:
    """An address moved by a distance in bytes; what is absent stays so."""
    return builder.select(emit.present(builder, address), builder.add(address, distance), address)


compute_narrow_rows = computing(narrow_rows)
"""Computes rows of a vector's part: the whole, 1, or a half, 2."""

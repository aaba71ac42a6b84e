"""Vector building blocks: LLVM code for whole vectors, as wide as the registers of the CPU compiled for.

numba's own vectoriser does not keep a tile of sums in registers. These functions write code through a
builder, for intrinsics to call. Addresses, strides and counts are int64 values, strides and offsets in bytes;
no access assumes more than the alignment of an element.
"""

# pyright: basic, reportAttributeAccessIssue=false
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core.registry import cpu_target

from ..engine.intrinsics import I8, I32, I64, POINTER, declare

Builder = Any
"""An ``llvmlite.ir.IRBuilder``; its methods carry no types that a checker could follow."""

Value = Any
"""Whatever a builder makes or takes: values, types, blocks, functions."""

VOID = ir.VoidType()
NAMES = {ir.FloatType(): "f32", ir.DoubleType(): "f64"}
SIZES = {ir.FloatType(): 4, ir.DoubleType(): 8}
"""Bytes of an element."""

CACHE_LINE = 64
"""Bytes; at least as many as the widest vector has."""

PROBE = """
define <16 x float> @probe(<16 x float> %a, <16 x float> %b) {
  %sum = fadd <16 x float> %a, %b
  ret <16 x float> %sum
}
"""


@cache
def vector_bytes() -> int:
    """Bytes of the vector registers of the CPU that numba compiles for: 64 (AVX-512), 32 (AVX), else 16.

    LLVM alone knows which registers the name of a CPU stands for, so it is asked to compile a sum.
    """
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    assembly = machine.emit_assembly(llvm.parse_assembly(PROBE))
    return 64 if "zmm" in assembly else 32 if "ymm" in assembly else 16


def vector_type(element: Value) -> Value:
    """The vector of elements that fills a register."""
    return ir.VectorType(element, vector_bytes() // SIZES[element])


def internal(module: Value, name: str, arguments: int, write: Callable[..., None]) -> Value:
    """The function of that name, private to the module, written by ``write(builder, *arguments)`` if it is new.

    It is never inlined: all calls share one body. It takes int64 values and returns nothing.
    """
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(VOID, [I64] * arguments), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("nounwind")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    write(builder, *function.args)
    builder.ret_void()
    return function


# ------------------------------------------------------------------ control flow


def loop(
    builder: Builder,
    count: Value,
    carried: Sequence[Value],
    body: Callable[[Sequence[Value]], Sequence[Value]],
) -> list[Value]:
    """Run ``body`` ``count`` times on values that stay in registers; what it leaves, or ``carried`` if count < 1."""
    function, before = builder.function, builder.block
    inside, after = function.append_basic_block("loop"), function.append_basic_block("done")
    builder.cbranch(builder.icmp_signed(">", count, I64(0)), inside, after)
    builder.position_at_end(inside)
    phis = [builder.phi(value.type) for value in (count, *carried)]
    changed = body(phis[1:])
    left = builder.sub(phis[0], I64(1))
    for phi, first, next_one in zip(phis, (count, *carried), (left, *changed), strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(next_one, builder.block)
    end = builder.block
    builder.cbranch(builder.icmp_signed(">", left, I64(0)), inside, after)
    builder.position_at_end(after)
    return [_merged(builder, a, before, b, end) for a, b in zip(carried, changed, strict=True)]


def when(
    builder: Builder,
    condition: Value,
    values: Sequence[Value],
    change: Callable[[Sequence[Value]], Sequence[Value]],
) -> list[Value]:
    """``change(values)`` if the condition holds, else the values."""
    before = builder.block
    with builder.if_then(condition):
        changed = change(values)
        end = builder.block
    return [_merged(builder, a, before, b, end) for a, b in zip(values, changed, strict=True)]


def _merged(builder: Builder, a: Value, a_block: Value, b: Value, b_block: Value) -> Value:
    phi = builder.phi(a.type)
    phi.add_incoming(a, a_block)
    phi.add_incoming(b, b_block)
    return phi


# ------------------------------------------------------------------ values


def present(builder: Builder, value: Value) -> Value:
    """Whether an int64 is not 0."""
    return builder.icmp_signed("!=", value, I64(0))


def constant(kind: Value, value: float) -> Value:
    """The vector with ``value`` in every lane."""
    return ir.Constant(kind, [value] * kind.count)


def splat(builder: Builder, scalar: Value, lanes: int) -> Value:
    """The vector with a scalar in every lane."""
    junk = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    one = builder.insert_element(junk, scalar, I32(0))
    return builder.shuffle_vector(one, junk, ir.Constant(ir.VectorType(I32, lanes), None))


def lanes_below(builder: Builder, count: Value, first: int, lanes: int) -> Value:
    """The mask of the lanes ``l`` with ``first + l < count``; the count is below 2^31."""
    numbers = ir.Constant(ir.VectorType(I32, lanes), [first + lane for lane in range(lanes)])
    return builder.icmp_signed("<", numbers, splat(builder, builder.trunc(count, I32), lanes))


def lanes_if(builder: Builder, condition: Value, mask: Value) -> Value:
    """The mask if a condition holds, else no lane."""
    return builder.and_(mask, splat(builder, condition, mask.type.count))


def fma(builder: Builder, a: Value, b: Value, c: Value) -> Value:
    """``a * b + c`` lane by lane, each rounded once."""
    return builder.call(declare(builder, f"llvm.fma.{_suffix(a.type)}", a.type, [a.type] * 3), [a, b, c])


def transposed(builder: Builder, rows: Sequence[Value]) -> list[Value]:
    """The transpose of as many vectors as they have lanes: off-diagonal quarters change places, halves first."""
    rows, lanes = list(rows), len(rows)
    half = lanes // 2
    while half:
        kept = [i if not i & half else lanes + i - half for i in range(lanes)]
        moved = [i + half if not i & half else lanes + i for i in range(lanes)]
        for i in (i for i in range(lanes) if not i & half):
            upper, lower = rows[i], rows[i + half]
            rows[i] = builder.shuffle_vector(upper, lower, ir.Constant(ir.VectorType(I32, lanes), kept))
            rows[i + half] = builder.shuffle_vector(upper, lower, ir.Constant(ir.VectorType(I32, lanes), moved))
        half //= 2
    return rows


# ------------------------------------------------------------------ memory


def at(builder: Builder, address: Value, offset: Value | int = 0) -> Value:
    """The pointer to an address, given as int64 or pointer, moved by ``offset`` bytes."""
    pointer = address if address.type == POINTER else builder.inttoptr(address, POINTER)
    return builder.gep(pointer, [I64(offset) if isinstance(offset, int) else offset], source_etype=I8)


def load(builder: Builder, pointer: Value, kind: Value) -> Value:
    """A vector or an element from memory."""
    return builder.load(pointer, typ=kind, align=SIZES[getattr(kind, "element", kind)])


def store(builder: Builder, value: Value, pointer: Value) -> None:
    """A vector or an element to memory."""
    builder.store(value, pointer, align=SIZES[getattr(value.type, "element", value.type)])


def masked_load(builder: Builder, pointer: Value, mask: Value, otherwise: Value) -> Value:
    """The lanes in ``mask`` from memory, of which no other byte is touched; the others of ``otherwise``."""
    kind = otherwise.type
    arguments = [POINTER, I32, mask.type, kind]
    function = declare(builder, f"llvm.masked.load.{_suffix(kind)}.p0", kind, arguments)
    return builder.call(function, [pointer, I32(SIZES[kind.element]), mask, otherwise])


def masked_store(builder: Builder, vector: Value, pointer: Value, mask: Value) -> None:
    """The lanes in ``mask`` to memory, of which no other byte is touched."""
    kind = vector.type
    function = declare(builder, f"llvm.masked.store.{_suffix(kind)}.p0", VOID, [kind, POINTER, I32, mask.type])
    builder.call(function, [vector, pointer, I32(SIZES[kind.element]), mask])


def prefetch_to_write(builder: Builder, pointer: Value) -> None:
    """Ask for the cache line of a pointer, soon to be written; nothing happens where there is no such memory."""
    write, all_caches, data = I32(1), I32(3), I32(1)
    function = declare(builder, "llvm.prefetch.p0", VOID, [POINTER, I32, I32, I32])
    builder.call(function, [pointer, write, all_caches, data])


def _suffix(kind: Value) -> str:
    return f"v{kind.count}{NAMES[kind.element]}"

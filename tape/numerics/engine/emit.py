"""The machine operations that kernels are made of, each written once: LLVM code for scalars and for vectors.

Intrinsics and the writers of tiles call them with a builder. They are the ones that IEEE-754 rounds correctly, and
those that compute nothing, so a kernel's bits do not depend on the machine. Addresses, strides and counts are int64
values, strides and offsets in bytes; no access assumes more than the alignment of an element.
"""

# pyright: basic, reportAttributeAccessIssue=false
from collections.abc import Sequence
from typing import Any

from .numba_compiler import target
from .numba_internals import ir

Builder = Any
"""An ``llvmlite.ir.IRBuilder``; its methods carry no types that a checker could follow."""

Value = Any
"""Whatever a builder makes or takes: values, types, blocks, functions."""

I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
POINTER, VOID = ir.PointerType(), ir.VoidType()
TRIPLE = target()[0]

# ------------------------------------------------------------------ types and functions


def element_of(kind: Value) -> Value:
    """The type of a vector's elements; a scalar's own."""
    return kind.element if isinstance(kind, ir.VectorType) else kind


def bytes_of(kind: Value) -> int:
    """Bytes of an element of a type."""
    element = element_of(kind)
    return {F32: 4, F64: 8}.get(element) or element.width // 8


def name_of(kind: Value) -> str:
    """What LLVM calls a type of numbers or vectors: ``f32``, ``v16i8``."""
    element = element_of(kind)
    name = {F32: "f32", F64: "f64"}.get(element) or f"i{element.width}"
    return f"v{kind.count}{name}" if isinstance(kind, ir.VectorType) else name


def declare(builder: Builder, name: str, result: Value, arguments: Sequence[Value]) -> Value:
    """The external function of a name in the module being built, an LLVM intrinsic for example."""
    module = builder.module
    known = module.globals.get(name)
    return known or ir.Function(module, ir.FunctionType(result, arguments), name)


# ------------------------------------------------------------------ numbers


def _computed(builder: Builder, name: str, *operands: Value) -> Value:
    """LLVM's function of that name of floats or vectors of floats, all of one type."""
    kind = operands[0].type
    return builder.call(declare(builder, f"llvm.{name}.{name_of(kind)}", kind, [kind] * len(operands)), operands)


def fma(builder: Builder, a: Value, b: Value, c: Value) -> Value:
    """``a * b + c`` rounded once (IEEE-754 fusedMultiplyAdd), on every target."""
    return _computed(builder, "fma", a, b, c)


def sqrt(builder: Builder, x: Value) -> Value:
    """The square root, rounded correctly; numba's own calls libm's."""
    return _computed(builder, "sqrt", x)


def absolute(builder: Builder, x: Value) -> Value:
    """The float without its sign."""
    return _computed(builder, "fabs", x)


def constant(kind: Value, value: float) -> Value:
    """A number, in every lane of a vector."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def present(builder: Builder, value: Value) -> Value:
    """Whether an int64 is not 0."""
    return builder.icmp_signed("!=", value, I64(0))


# ------------------------------------------------------------------ lanes


def shuffled(builder: Builder, places: Sequence[int], a: Value, b: Value = None) -> Value:
    """The vector of the lanes at these places, counted through a and then b."""
    other = ir.Constant(a.type, ir.Undefined) if b is None else b
    return builder.shuffle_vector(a, other, ir.Constant(ir.VectorType(I32, len(places)), list(places)))


def splat(builder: Builder, scalar: Value, lanes: int) -> Value:
    """The vector with a scalar in every lane."""
    junk = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    return shuffled(builder, [0] * lanes, builder.insert_element(junk, scalar, I32(0)))


def lanes_below(builder: Builder, count: Value, lanes: int, first: int = 0) -> Value:
    """The mask of the lanes ``l`` with ``first + l < count``; the count is below 2^31."""
    numbers = ir.Constant(ir.VectorType(I32, lanes), [first + lane for lane in range(lanes)])
    return builder.icmp_signed("<", numbers, splat(builder, builder.trunc(count, I32), lanes))


def first_lanes(builder: Builder, count: Value, lanes: int) -> Value:
    """The mask of the first lanes, as many as a count of any size says."""
    fewer = builder.icmp_signed("<", count, I64(lanes))
    return lanes_below(builder, builder.select(fewer, count, I64(lanes)), lanes)


def lanes_if(builder: Builder, condition: Value, mask: Value) -> Value:
    """The mask if a condition holds, else no lane."""
    return builder.and_(mask, splat(builder, condition, mask.type.count))


# ------------------------------------------------------------------ memory


def at(builder: Builder, address: Value, offset: Value | int = 0) -> Value:
    """The pointer to an address, given as int64 or pointer, moved by ``offset`` bytes."""
    pointer = address if isinstance(address.type, ir.PointerType) else builder.inttoptr(address, POINTER)
    return builder.gep(pointer, [I64(offset) if isinstance(offset, int) else offset], source_etype=I8)


def word_at(builder: Builder, block: Value, i: Value) -> Value:
    """The pointer to the ``i``-th int64 of a block, given by its address or pointer."""
    pointer = block if isinstance(block.type, ir.PointerType) else builder.inttoptr(block, POINTER)
    return builder.gep(pointer, [i], source_etype=I64)


def load(builder: Builder, pointer: Value, kind: Value, align: int | None = None) -> Value:
    """A vector or an element from memory."""
    return builder.load(pointer, typ=kind, align=align or bytes_of(kind))


def store(builder: Builder, value: Value, pointer: Value) -> None:
    """A vector or an element to memory."""
    fitting = builder.bitcast(pointer, value.type.as_pointer())  # numba's pointers are typed
    builder.store(value, fitting, align=bytes_of(value.type))


def masked_load(builder: Builder, pointer: Value, mask: Value, otherwise: Value, align: int | None = None) -> Value:
    """The lanes in ``mask`` from memory, of which no other byte is touched; the others of ``otherwise``."""
    kind = otherwise.type
    function = declare(builder, f"llvm.masked.load.{name_of(kind)}.p0", kind, [POINTER, I32, mask.type, kind])
    return builder.call(function, [pointer, I32(align or bytes_of(kind)), mask, otherwise])


def masked_store(builder: Builder, vector: Value, pointer: Value, mask: Value) -> None:
    """The lanes in ``mask`` to memory, of which no other byte is touched."""
    kind = vector.type
    function = declare(builder, f"llvm.masked.store.{name_of(kind)}.p0", VOID, [kind, POINTER, I32, mask.type])
    builder.call(function, [vector, pointer, I32(bytes_of(kind)), mask])


def gather(builder: Builder, pointers: Value, mask: Value, otherwise: Value) -> Value:
    """The elements at the pointers in ``mask``; the others of ``otherwise``."""
    kind, name = otherwise.type, f"{name_of(otherwise.type)}.v{otherwise.type.count}p0"
    function = declare(builder, f"llvm.masked.gather.{name}", kind, [pointers.type, I32, mask.type, kind])
    return builder.call(function, [pointers, I32(bytes_of(kind)), mask, otherwise])


def scatter(builder: Builder, vector: Value, pointers: Value, mask: Value) -> None:
    """The lanes in ``mask`` to the pointers."""
    kind, name = vector.type, f"{name_of(vector.type)}.v{vector.type.count}p0"
    function = declare(builder, f"llvm.masked.scatter.{name}", VOID, [kind, pointers.type, I32, mask.type])
    builder.call(function, [vector, pointers, I32(bytes_of(kind)), mask])


def prefetch_to_write(builder: Builder, pointer: Value) -> None:
    """Ask for the cache line of a pointer, soon to be written; nothing happens where there is no such memory."""
    write, all_caches, data = I32(1), I32(3), I32(1)
    function = declare(builder, "llvm.prefetch.p0", VOID, [POINTER, I32, I32, I32])
    builder.call(function, [pointer, write, all_caches, data])

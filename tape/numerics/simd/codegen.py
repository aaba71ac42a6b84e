"""How tiles are written: vectors as wide as the registers of the CPU compiled for, functions and loops around them.

numba's own vectoriser does not keep a tile of sums in registers. These functions write code through a
builder, for intrinsics to call.
"""

# pyright: basic, reportAttributeAccessIssue=false
from collections.abc import Callable, Sequence
from functools import cache

from ..engine.code_for import VECTOR
from ..engine.emit import I64, VOID, Builder, Value, bytes_of, shuffled
from ..engine.numba_compiler import assembly
from ..engine.numba_internals import ir

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
    """Bytes of the vector registers of the CPU that code is for: 64 (AVX-512), 32 (AVX), else 16.

    Of the one that numba compiles for LLVM alone knows which registers its name stands for, so it is asked to compile a
    sum.
    """
    if VECTOR is not None:
        return VECTOR
    written = assembly(PROBE)
    return 64 if "zmm" in written else 32 if "ymm" in written else 16


def vector_type(element: Value) -> Value:
    """The vector of elements that fills a register."""
    return ir.VectorType(element, vector_bytes() // bytes_of(element))


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


SHARED = "dgrr.shared."
"""How names begin of functions that are the same in every module."""


def shared(module: Value, name: str, result: Value, arguments: Sequence[Value], write: Callable[..., None]) -> Value:
    """The function of that name, the same in every module, written by ``write(builder, *arguments)`` if it is new.

    It is never inlined, and in a library of several kernels stands once.
    """
    name = SHARED + name
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(result, arguments), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    function.attributes.add("nounwind")
    write(ir.IRBuilder(function.append_basic_block("entry")), *function.args)
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


def transposed(builder: Builder, rows: Sequence[Value]) -> list[Value]:
    """The transpose of as many vectors as they have lanes: off-diagonal quarters change places, halves first."""
    rows, lanes = list(rows), len(rows)
    half = lanes // 2
    while half:
        kept = [i if not i & half else lanes + i - half for i in range(lanes)]
        moved = [i + half if not i & half else lanes + i for i in range(lanes)]
        for i in (i for i in range(lanes) if not i & half):
            upper, lower = rows[i], rows[i + half]
            rows[i] = shuffled(builder, kept, upper, lower)
            rows[i + half] = shuffled(builder, moved, upper, lower)
        half //= 2
    return rows

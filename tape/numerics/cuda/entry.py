"""The entry of a translated kernel, in LLVM's language: every thread of the GPU runs one part.

``entry(table, words, parts, op, report, guarded)``: ``table`` and ``words`` are the kernel's own, in the GPU's memory.
A status other than 0 becomes ``op << 40 | status`` at the address ``report``, unless what stands there is less: so the
first fault in the order of the program is reported, as on a CPU. A call that is guarded, because it changes what
outlives the step, does nothing where an op before it has failed.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from ..engine.chain import Spread

NAME = "kernel"
"""What every entry is called."""

SHIFT = 40
"""Bits of a report below the number of the op."""

NO_FAULT = (1 << 64) - 1
"""A report of none."""

_HEAD = """
target datalayout = ""
target triple = ""
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.assume(i1)
{declared}
define ptx_kernel void @{name}(ptr %table, i64 %words, i64 %parts, i64 %op, ptr %report, i64 %guarded) {{
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %thread.wide = zext i32 %thread to i64
  %block.wide = zext i32 %block to i64
  %threads.wide = zext i32 %threads to i64
  %before = mul i64 %block.wide, %threads.wide
  %part = add i64 %before, %thread.wide
  %exists = icmp ult i64 %part, %parts
  br i1 %exists, label %ask, label %end
ask:
  %guards = icmp ne i64 %guarded, 0
  br i1 %guards, label %look, label %run
look:
  %fault = load volatile i64, ptr %report
  %mine = shl i64 %op, {shift}
  %earlier = icmp ult i64 %fault, %mine
  br i1 %earlier, label %end, label %run
run:
  %result = alloca i64
  %error = alloca ptr
"""

_TAIL = """
  %bad = icmp ne i64 %status, 0
  br i1 %bad, label %tell, label %end
tell:
  %first = shl i64 %op, {shift}
  %told = or i64 %first, %status
  %old = atomicrmw umin ptr %report, i64 %told monotonic
  br label %end
end:
  ret void
}}
!0 = !{{}}
"""

_DECLARED = "declare i32 @{}(ptr, ptr, ptr, i64, i64, i64)"
_RUN = "  store i64 0, ptr %result\n  call i32 @{}(ptr %result, ptr %error, ptr {}, i64 {}, i64 {}, i64 %parts)"


class Operand(NamedTuple):
    """An operand of a link: its place, bytes of an element, and where its elements lie, as in `Link`."""

    place: int
    itemsize: int
    spread: Spread | None = None


class LinkCode(NamedTuple):
    """A link of a chain: the symbol of its kernel, whose first word is the number of elements, and its operands."""

    symbol: str
    operands: Sequence[Operand]


def kernel_entry(symbol: str) -> str:
    """The entry of one kernel."""
    body = _RUN.format(symbol, "%table", "%words", "%part") + "\n  %status = load i64, ptr %result"
    return _around([symbol], body)


def chain_entry(links: Sequence[LinkCode], locals: int) -> str:
    """The entry of a chain: a thread runs every link on its element; what lies between is the thread's own, 0 first.

    ``words`` points to the addresses of the links' words. Every operand is moved to the thread's element, and each link
    runs its first part: of an address that a kernel moves back LLVM does not see that it is the thread's own again,
    and would write to memory what should stay in a register.
    """
    lines = [line for i in range(locals) for line in (f"  %local{i} = alloca i64", f"  store i64 0, ptr %local{i}")]
    lines += [f"  %table{c} = alloca [{len(link.operands)} x i64]" for c, link in enumerate(links)]
    lines.append("  %all = inttoptr i64 %words to ptr")
    for c, link in enumerate(links):
        for k, operand in enumerate(link.operands):
            lines += _operand(f"{c}.{k}", Operand(*operand))
            lines.append(f"  %slot{c}.{k} = getelementptr i64, ptr %table{c}, i64 {k}")
            lines.append(f"  store i64 %operand{c}.{k}, ptr %slot{c}.{k}")
        lines.append(f"  %at{c} = getelementptr i64, ptr %all, i64 {c}")
        lines.append(f"  %words{c} = load i64, ptr %at{c}, !invariant.load !0")
        lines += _there(c)
        lines.append(_RUN.format(link.symbol, f"%table{c}", f"%words{c}", 0))
    lines.append("  %status = add i64 0, 0")  # links are elementwise: none can fail
    return _around(list(dict.fromkeys(link.symbol for link in links)), "\n".join(lines))


def _there(c: int) -> list[str]:
    """That a link has an element: else every link would ask first."""
    return [
        f"  %count{c} = inttoptr i64 %words{c} to ptr",
        f"  %size{c} = load i64, ptr %count{c}",
        f"  %there{c} = icmp sgt i64 %size{c}, 0",
        f"  call void @llvm.assume(i1 %there{c})",
    ]


def _operand(name: str, operand: Operand) -> list[str]:
    """The address of the thread's element of an operand: its own value, or one that lies outside."""
    place, itemsize, spread = operand
    if place < 0:
        return [f"  %operand{name} = ptrtoint ptr %local{-1 - place} to i64"]
    lines = [
        f"  %from{name} = getelementptr i64, ptr %table, i64 {place}",
        f"  %begin{name} = load i64, ptr %from{name}, !invariant.load !0",
    ]
    if spread is not None:
        return [*lines, *_spread(name, *spread)]
    return [
        *lines,
        f"  %offset{name} = mul i64 %part, {itemsize}",
        f"  %operand{name} = add i64 %begin{name}, %offset{name}",
    ]


def _spread(name: str, before: int, axes: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Where the thread's element lies: its position along each axis, the last one first, by constants."""
    yield f"  %at{name}.0 = add i64 %begin{name}, {before}"
    kind = "i32" if prod(size for size, _ in axes) < 1 << 31 else "i64"
    yield f"  %rest{name}.0 = {'trunc i64 %part to i32' if kind == 'i32' else 'add i64 %part, 0'}"
    for k, (size, stride) in enumerate(reversed(axes)):
        yield f"  %index{name}.{k} = urem {kind} %rest{name}.{k}, {size}"
        yield f"  %rest{name}.{k + 1} = udiv {kind} %rest{name}.{k}, {size}"
        index = f"%index{name}.{k}"
        yield f"  %wide{name}.{k} = {f'zext i32 {index} to i64' if kind == 'i32' else f'add i64 {index}, 0'}"
        yield f"  %moved{name}.{k} = mul i64 %wide{name}.{k}, {stride}"
        yield f"  %at{name}.{k + 1} = add i64 %at{name}.{k}, %moved{name}.{k}"
    yield f"  %operand{name} = add i64 %at{name}.{len(axes)}, 0"


def _around(symbols: Sequence[str], body: str) -> str:
    declared = "\n".join(_DECLARED.format(symbol) for symbol in symbols)
    head = _HEAD.format(declared=declared, name=NAME, shift=SHIFT)
    return head + body + _TAIL.format(shift=SHIFT)

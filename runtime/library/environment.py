"""Round to nearest and keep subnormals, whatever the calling thread has set, and put back what was set: by target."""

_NONE = """
define internal i64 @environment.enter() alwaysinline {
  ret i64 0
}
define internal void @environment.leave(i64 %old) alwaysinline {
  ret void
}
"""

_X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal i64 @environment.enter() noinline {
  %old = alloca i32
  %new = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %old)
  store i32 8064, ptr %new
  call void @llvm.x86.sse.ldmxcsr(ptr %new)
  %value = load i32, ptr %old
  %wide = zext i32 %value to i64
  ret i64 %wide
}
define internal void @environment.leave(i64 %old) noinline {
  %place = alloca i32
  %value = trunc i64 %old to i32
  store i32 %value, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret void
}
"""

_WORD = """
declare {kind} @llvm.{get}()
declare void @llvm.{set}({kind})
define internal i64 @environment.enter() noinline {{
  %value = call {kind} @llvm.{get}()
  call void @llvm.{set}({kind} {default})
  {widened}
  ret i64 %wide
}}
define internal void @environment.leave(i64 %old) noinline {{
  {narrowed}
  call void @llvm.{set}({kind} %value)
  ret void
}}
"""


def _of_word(kind: str, get: str, set: str, default: int) -> str:
    """Of a control word that LLVM reads and writes."""
    widened = "%wide = add i64 %value, 0" if kind == "i64" else f"%wide = zext {kind} %value to i64"
    narrowed = "%value = add i64 %old, 0" if kind == "i64" else f"%value = trunc i64 %old to {kind}"
    return _WORD.format(kind=kind, get=get, set=set, default=default, widened=widened, narrowed=narrowed)


ENVIRONMENTS = {
    "": _NONE,
    "x86": _X86,
    "aarch64": _of_word("i64", "aarch64.get.fpcr", "aarch64.set.fpcr", 0),
    "arm": _of_word("i32", "arm.get.fpscr", "arm.set.fpscr", 0),
    "riscv": _of_word("i32", "get.rounding", "set.rounding", 1),
}

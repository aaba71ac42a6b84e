"""Texts of LLVM from several processes, linked to one module."""

import re

from dgrr.tape.numerics.llvm.kernel_text import cleaned
from dgrr.tape.numerics.llvm.link import linked, machine_for, optimised
from dgrr.tape.numerics.simd.codegen import SHARED

MODULE = """
target triple = "anything"
define linkonce_odr i32 @helper() noinline {{
  ret i32 {0}
}}
define i32 @kernel{0}() {{
  %x = call i32 @helper()
  ret i32 %x
}}
"""

ENTRY = """
declare i32 @kernel1()
declare i32 @kernel2()
define i32 @both() {
  %x = call i32 @kernel1()
  %y = call i32 @kernel2()
  %z = mul i32 %y, 10
  %sum = add i32 %x, %z
  ret i32 %sum
}
"""


def test_equal_private_names_of_two_texts_do_not_meet() -> None:
    machine = machine_for("aarch64-unknown-linux-gnu", "generic")
    module = linked([ENTRY, MODULE.format(1), MODULE.format(2)], machine, ["both"])
    text = str(optimised(module, machine, vectorised=True))
    assert "ret i32 21" in text
    assert "@kernel1" not in text


def test_what_all_texts_share_stands_once() -> None:
    machine = machine_for("aarch64-unknown-linux-gnu", "generic")
    texts = [MODULE.format(n).replace("@helper", f"@{SHARED}helper").replace(f"i32 {n}\n", "i32 5\n") for n in (1, 2)]
    text = str(linked([ENTRY, *texts], machine, ["both"]))
    assert len(re.findall(r"^define internal i32 @dgrr\.shared\.helper", text, re.M)) == 1
    assert "helper." not in text


def test_a_text_is_cleaned_of_what_python_calls() -> None:
    text = (
        "define i32 @_ZN3one() {\n  ret i32 0\n}\n"
        "define i64 @cfunc._ZN3one() {\n  %x = call i32 @_ZN3one()\n  ret i64 0\n}\n"
        "define void @NRT_incref(ptr %x) {\n  ret void\n}\n"
    )
    found = cleaned(text, "_ZN3one", "kernel_one_float32")
    assert "cfunc" not in found
    assert "define i32 @kernel_one_float32()" in found
    assert "define internal void @NRT_incref(ptr %array) alwaysinline { ret void }" in found

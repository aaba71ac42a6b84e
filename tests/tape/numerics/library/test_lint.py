"""What a finished module may hold."""

import pytest

from dgrr.tape.numerics.library.lint import findings

OTHERWISE = "lets floats be computed otherwise than they are written"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("%x = fadd fast float %a, %b", OTHERWISE),
        ("%x = fmul nnan contract <4 x float> %a, %b", OTHERWISE),
        *((f"%x = fsub {flag} float %a, %b", OTHERWISE) for flag in ("nnan", "ninf", "nsz")),
        ("%x = call reassoc float @llvm.sqrt.f32(float %a)", OTHERWISE),
        (
            "%x = tail call float @llvm.fmuladd.f32(float %a, float %b, float %c)",
            "may fuse a product with a sum",
        ),
        ("%x = fpext half %a to float", "computes in a type that the contract has not"),
        (
            "%x = tail call float @fmaf(float %a, float %b, float %c)",
            "calls fmaf, which is not among",
        ),
        (
            "%x = call <4 x float> @llvm.sin.v4f32(<4 x float> %a)",
            "calls llvm.sin.v4f32, which is not",
        ),
        ("%x = call float @llvm.vector.reduce.fadd.v4f32(float %a, <4 x float> %b)", "calls llvm.vector.reduce.fadd"),
        ('attributes #0 = { "unsafe-fp-math"="true" }', OTHERWISE),
        ('attributes #0 = { "denormal-fp-math"="preserve-sign" }', OTHERWISE),
    ],
)
def test_what_is_refused(line: str, reason: str) -> None:
    ((text, found),) = findings(f"define void @f() {{\n  {line}\n}}")
    assert text == line
    assert found.startswith(reason)


def test_what_may_stand() -> None:
    text = """
@message = constant [30 x i8] c"call fast float @fmaf(half)\\00\\00"
define internal fastcc float @own(float %fast) {
  %x = call float @llvm.fma.f32(float %fast, float %fast, float %fast)
  %y = tail call fastcc float @own(float %x)
  call void @llvm.masked.store.v16f32.p0(<16 x float> %v, ptr %p, i32 4, <16 x i1> %m)
  %z = tail call <4 x float> @llvm.wasm.relaxed.madd.v4f32(<4 x float> %a, <4 x float> %b, <4 x float> %c)
  ret float %y
}
"""
    assert not findings(text)

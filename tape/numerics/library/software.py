"""What machines lack, in LLVM's language: fused multiply-add, and rounding to whole numbers, with the bits of IEEE-754.

In float32 a product is exact in float64; the sum there is rounded to odd by its own exact error (Knuth; Boldo and
Melquiond, IEEE TC 57, 2008), so that rounding it to float32 is the only rounding that can be seen. It has no branch,
and vectors do it in every lane. In float64 it is done lane by lane by `fma64`. Neither is inlined: some thirty
instructions at every product were most of a library.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from .targets import Target

FMA64 = "dgrr_fma64"
"""The symbol of the function of `fma64`."""

INTRINSIC = re.compile(r"@llvm\.(fma|floor|ceil|trunc|rint|nearbyint|roundeven)\.(v(\d+))?f(32|64)\b")


class FloatForm(NamedTuple):
    """An operation on floats of so many bits; with 0 lanes on one number."""

    name: str
    lanes: int
    bits: int

    @property
    def symbol(self) -> str:
        """What stands for LLVM's own."""
        return f"@dgrr.{self.name}.{f'v{self.lanes}' if self.lanes else ''}f{self.bits}"

    @property
    def float(self) -> str:
        """The type of its values."""
        return self.of("float" if self.bits == 32 else "double")

    def of(self, kind: str) -> str:
        """The type of as many values of another kind."""
        return f"<{self.lanes} x {kind}>" if self.lanes else kind

    def all(self, value: str, kind: str) -> str:
        """A constant in every lane."""
        return f"splat ({kind} {value})" if self.lanes else value


def with_software(text: str, target: Target) -> tuple[str, bool]:
    """A module with functions of its own in the place of what a target lacks; whether they call `FMA64`."""
    found = {FloatForm(m[1], int(m[3] or 0), int(m[4])) for m in INTRINSIC.finditer(text)}
    lacking = {form for form in found if _lacks(target, form)}
    needed = target.fused == "software" and any((form.name, form.bits) == ("fma", 64) for form in lacking)
    if needed:
        lacking.add(FloatForm("fma", 0, 64))
    for form in lacking:
        theirs = re.escape(form.symbol.replace("dgrr", "llvm", 1))
        text = re.sub(rf"^declare [^@\n]*{theirs}\([^\n]*$", "", text, flags=re.M)
        text = re.sub(rf"{theirs}\(", f"{form.symbol}(", text)
    written = "\n".join(_written(form, target) for form in sorted(lacking))
    declared = {m[2]: f"declare {m[1]} {m[2]}({_kinds(m[3])})" for m in CALLED.finditer(written)}
    return "\n".join([text, *(line for name, line in declared.items() if f"{name}(" not in text), written]), needed


CALLED = re.compile(rf"call ([^@]+) (@(?:llvm\.[\w.]+|{FMA64}))\(([^)]*)\)")
"""A call of what a function does not bring along."""


def _kinds(arguments: str) -> str:
    """The types of arguments."""
    return re.sub(r" %[\w.]+", "", arguments)


def _lacks(target: Target, form: FloatForm) -> bool:
    return target.fused != "native" if form.name == "fma" else not target.rounds


def _written(form: FloatForm, target: Target) -> str:
    if form.name != "fma":
        return _to_whole(form)
    if target.fused == "relaxed":
        return _relaxed(form)
    return _fma32(form) if form.bits == 32 else _fma64(form)


def _function(form: FloatForm, arguments: str, lines: list[str], result: str, inlined: str = "alwaysinline") -> str:
    given = ", ".join(f"{form.float} %{name}" for name in arguments)
    body = "\n  ".join([*lines, f"ret {form.float} {result}"])
    return f"define internal {form.float} {form.symbol}({given}) {inlined} {{\n  {body}\n}}"


# ------------------------------------------------------------------ a product with a sum


def _fma32(form: FloatForm) -> str:
    """By float64: product, sum, its error (two-sum), the sum rounded to odd, the result."""
    wide, word, flag = (form.of(kind) for kind in ("double", "i64", "i1"))
    zero, sign = form.all("0.0", "double"), form.all(str(-(1 << 63)), "i64")
    lines = [
        *(f"%{v}.wide = fpext {form.float} %{v} to {wide}" for v in "abc"),
        f"%product = fmul {wide} %a.wide, %b.wide",
        f"%sum = fadd {wide} %product, %c.wide",
        f"%added = fsub {wide} %sum, %product",
        f"%kept = fsub {wide} %sum, %added",
        f"%lost.product = fsub {wide} %product, %kept",
        f"%lost.c = fsub {wide} %c.wide, %added",
        f"%error = fadd {wide} %lost.product, %lost.c",
        f"%sum.bits = bitcast {wide} %sum to {word}",
        f"%error.bits = bitcast {wide} %error to {word}",
        f"%sum.sign = and {word} %sum.bits, {sign}",
        f"%outwards.bits = xor {word} %error.bits, %sum.sign",
        f"%outwards = bitcast {word} %outwards.bits to {wide}",
        f"%less = fcmp olt {wide} %outwards, {zero}",  # neither holds where the sum is infinite or no number
        f"%more = fcmp ogt {wide} %outwards, {zero}",
        f"%back = sext {flag} %less to {word}",
        f"%towards.zero = add {word} %sum.bits, %back",
        f"%inexact = or {flag} %less, %more",
        f"%last = zext {flag} %inexact to {word}",
        f"%odd.bits = or {word} %towards.zero, %last",
        f"%odd = bitcast {word} %odd.bits to {wide}",
        f"%result = fptrunc {wide} %odd to {form.float}",
    ]
    return _function(form, "abc", lines, "%result", "noinline")


def _fma64(form: FloatForm) -> str:
    if form.lanes:
        one = FloatForm("fma", 0, 64)
        return _by_parts(form, 1, lambda k: f"call double {one.symbol}({_parts(k, 'double')})")
    lines = [
        "%value = alloca double",
        "%error = alloca ptr",
        f"%status = call i32 @{FMA64}(ptr %value, ptr %error, double %a, double %b, double %c)",
        "%result = load double, ptr %value",
    ]
    return _function(form, "abc", lines, "%result", "noinline")


def _relaxed(form: FloatForm) -> str:
    """By machine vectors; the lanes that are left over ride in vectors of their own."""
    width = 128 // form.bits
    part = FloatForm("fma", width, form.bits).float
    name = f"@llvm.wasm.relaxed.madd.v{width}f{form.bits}"
    return _by_parts(form, width, lambda k: f"call {part} {name}({_parts(k, part)})")


def _parts(k: int, kind: str) -> str:
    return ", ".join(f"{kind} %{v}.part{k}" for v in "abc")


def _by_parts(form: FloatForm, width: int, call: Callable[[int], str]) -> str:
    """A function that computes ``width`` lanes at once, by ``call`` of the parts of a, b and c."""
    element, result, lines = "float" if form.bits == 32 else "double", "poison", list[str]()
    part = f"<{width} x {element}>"
    for first in range(0, max(form.lanes, 1), width):
        held = range(first, min(first + width, max(form.lanes, 1)))
        lines += [line for v in "abc" for line in _taken(form, v, held, element, width)]
        lines.append(f"%made{first} = {call(first)}")
        for lane, k in enumerate(held):
            value = f"%made{first}"
            if width > 1:
                lines.append(f"%lane{k} = extractelement {part} {value}, i32 {lane}")
                value = f"%lane{k}"
            if not form.lanes:
                return _function(form, "abc", lines, value)
            lines.append(f"%to{k} = insertelement {form.float} {result}, {element} {value}, i32 {k}")
            result = f"%to{k}"
    return _function(form, "abc", lines, result)


def _taken(form: FloatForm, v: str, held: range, element: str, width: int) -> list[str]:
    """The lanes ``held`` of an argument as ``%v.partK``."""
    first, made, lines = held[0], "poison", list[str]()
    for lane, k in enumerate(held):
        value, name = f"%{v}", f"%{v}.part{first}" if k == held[-1] else f"%{v}.in{k}"
        if form.lanes:
            value = f"%{v}.lane{k}" if width > 1 else name
            lines.append(f"{value} = extractelement {form.float} %{v}, i32 {k}")
        if width > 1:
            lines.append(f"{name} = insertelement <{width} x {element}> {made}, {element} {value}, i32 {lane}")
            made = name
    return lines


# ------------------------------------------------------------------ whole numbers

GREAT = {32: "8388608.0", 64: "4503599627370496.0"}
"""From which on all floats are whole."""


def _to_whole(form: FloatForm) -> str:
    """The nearest whole number, by adding `GREAT` and taking it away, or a neighbour of it. The sign stays."""
    kind, element = form.float, "float" if form.bits == 32 else "double"
    great, one, suffix = form.all(GREAT[form.bits], element), form.all("1.0", element), form.symbol.split(".", 2)[2]
    near, given = ("%whole", "%size") if form.name == "trunc" else ("%signed", "%a")
    beyond, back = ("olt", "fadd") if form.name == "ceil" else ("ogt", "fsub")
    nearest = form.name in ("rint", "nearbyint", "roundeven")
    lines = [
        f"%size = call {kind} @llvm.fabs.{suffix}({kind} %a)",
        f"%up = fadd {kind} %size, {great}",
        f"%whole = fsub {kind} %up, {great}",
        f"%signed = call {kind} @llvm.copysign.{suffix}({kind} %whole, {kind} %a)",
        f"%beyond = fcmp {'false' if nearest else beyond} {kind} {near}, {given}",
        f"%next = {back} {kind} {near}, {one}",
        f"%value = select {form.of('i1')} %beyond, {kind} %next, {kind} {near}",
        f"%rounded = call {kind} @llvm.copysign.{suffix}({kind} %value, {kind} %a)",
        f"%small = fcmp olt {kind} %size, {great}",
        f"%result = select {form.of('i1')} %small, {kind} %rounded, {kind} %a",
    ]
    return _function(form, "a", lines, "%result")

"""What machines lack, in LLVM's language: fused multiply-add, and rounding to whole numbers, with the bits of IEEE-754.

In float32 a product is exact in float64; the sum there is rounded to odd by its own exact error (Knuth; Boldo and
Melquiond, IEEE TC 57, 2008), so that rounding it to float32 is the only rounding that can be seen. It has no branch,
and vectors do it in every lane. It is not inlined: some thirty instructions at every product were most of a library.

In float64 a product is the sum of two numbers (Dekker), to which the addend is added in the same way (Boldo and
Melquiond, figure 3), where no part of it can be too large or too small for that. What is left is done by `fma64`.
"""

# kernels: none

import re
import struct
from collections.abc import Callable
from typing import Literal, NamedTuple

Fused = Literal["native", "software", "relaxed"]
"""Who fuses a product with a sum: the machine, arithmetic of the same bits, or WebAssembly's relaxed instruction."""

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


ONE, FOUR = FloatForm("fma", 0, 64), FloatForm("fma", 4, 64)
"""The forms that others of float64 are made of."""


def with_software(text: str, fused: Fused, *, rounds: bool) -> tuple[str, bool]:
    """A module with functions of its own in the place of what a machine lacks; whether they call `FMA64`.

    ``rounds`` is whether the machine has instructions that round to whole numbers.
    """
    found = {FloatForm(m[1], int(m[3] or 0), int(m[4])) for m in INTRINSIC.finditer(text)}
    lacking = {form for form in found if (fused != "native" if form.name == "fma" else not rounds)}
    needed = fused == "software" and any((form.name, form.bits) == ("fma", 64) for form in lacking)
    if needed:
        lacking |= {form._replace(name=name) for form in (ONE, FOUR) for name in ("fma", "far")}
    for form in lacking:
        theirs = re.escape(form.symbol.replace("dgrr", "llvm", 1))
        text = re.sub(rf"^declare [^@\n]*{theirs}\([^\n]*$", "", text, flags=re.M)
        text = re.sub(rf"{theirs}\(", f"{form.symbol}(", text)
    written = "\n".join(_written(form, fused) for form in sorted(lacking) if not _defined(form.symbol, text))
    declared = {m[2]: f"declare {m[1]} {m[2]}({_kinds(m[3])})" for m in CALLED.finditer(written)}
    return "\n".join([text, *(line for name, line in declared.items() if f"{name}(" not in text), written]), needed


def _defined(symbol: str, text: str) -> bool:
    """Whether a function is there already: of a module that was linked in after it had got its own."""
    return bool(re.search(rf"^define [^@\n]*{re.escape(symbol)}\(", text, re.M))


CALLED = re.compile(rf"call ([^@]+) (@(?:llvm\.[\w.]+|{FMA64}))\(([^)]*)\)")
"""A call of what a function does not bring along."""


def _kinds(arguments: str) -> str:
    """The types of arguments."""
    return re.sub(r" %[\w.]+", "", arguments)


def _written(form: FloatForm, fused: Fused) -> str:
    if form.name == "far":
        return _far(form)
    if form.name != "fma":
        return _to_whole(form)
    if fused == "relaxed":
        return _relaxed(form)
    return _fma32(form) if form.bits == 32 else _fma64(form)


def _function(form: FloatForm, arguments: str, lines: list[str], result: str, inlined: str = "alwaysinline") -> str:
    given = ", ".join(f"{form.float} %{name}" for name in arguments)
    body = "\n  ".join([*lines, f"ret {form.float} {result}"])
    return f"define internal {form.float} {form.symbol}({given}) {inlined} {{\n  {body}\n}}"


# ------------------------------------------------------------------ a product with a sum


def _fma32(form: FloatForm) -> str:
    """By float64: the product, which is exact there, and the sum, rounded to odd and then to float32."""
    wide = form.of("double")
    lines = [
        *(f"%{v}.wide = fpext {form.float} %{v} to {wide}" for v in "abc"),
        f"%product = fmul {wide} %a.wide, %b.wide",
        *_summed(wide, "sum", "%product", "%c.wide"),
        *_to_odd(form, "sum"),
        f"%result = fptrunc {wide} %odd to {form.float}",
    ]
    return _function(form, "abc", lines, "%result", "noinline")


def _summed(kind: str, name: str, x: str, y: str) -> list[str]:
    """The sum of two numbers, and its exact error (two-sum)."""
    return [
        f"%{name} = fadd {kind} {x}, {y}",
        f"%{name}.y = fsub {kind} %{name}, {x}",
        f"%{name}.x = fsub {kind} %{name}, %{name}.y",
        f"%{name}.lost.x = fsub {kind} {x}, %{name}.x",
        f"%{name}.lost.y = fsub {kind} {y}, %{name}.y",
        f"%{name}.error = fadd {kind} %{name}.lost.x, %{name}.lost.y",
    ]


def _to_odd(form: FloatForm, name: str) -> list[str]:
    """``%odd``, a sum of float64 rounded to odd: if it is not exact, that of its neighbours whose last bit is set."""
    wide, word, flag = (form.of(kind) for kind in ("double", "i64", "i1"))
    zero, sign = form.all("0.0", "double"), form.all(str(-(1 << 63)), "i64")
    return [
        f"%bits = bitcast {wide} %{name} to {word}",
        f"%error.bits = bitcast {wide} %{name}.error to {word}",
        f"%sign = and {word} %bits, {sign}",
        f"%outwards.bits = xor {word} %error.bits, %sign",
        f"%outwards = bitcast {word} %outwards.bits to {wide}",
        f"%less = fcmp olt {wide} %outwards, {zero}",  # neither holds where the sum is infinite or no number
        f"%more = fcmp ogt {wide} %outwards, {zero}",
        f"%back = sext {flag} %less to {word}",
        f"%towards.zero = add {word} %bits, %back",
        f"%inexact = or {flag} %less, %more",
        f"%last = zext {flag} %inexact to {word}",
        f"%odd.bits = or {word} %towards.zero, %last",
        f"%odd = bitcast {word} %odd.bits to {wide}",
    ]


LARGEST, LEAST = 2.0**500, 2.0**-900
"""No part of a sum is too large or too small for float64 if all numbers lie below the first, and the product of two of
them above the second or it is 0."""


def _fma64(form: FloatForm) -> str:
    """By four lanes, or by one where they do not fill four; `far` does what lies beyond the range."""
    if form not in (ONE, FOUR):
        part = ONE if form.lanes % FOUR.lanes else FOUR
        return _by_parts(form, part.lanes or 1, lambda k: f"call {part.float} {part.symbol}({_parts(k, part.float)})")
    kind, flag, mask, far = form.float, form.of("i1"), f"i{form.lanes or 1}", form._replace(name="far")
    lines = [
        *_product(form),
        *_summed(kind, "low", "%c", "%product.error"),
        *_summed(kind, "high", "%product", "%low"),
        *_summed(kind, "sum", "%low.error", "%high.error"),
        *_to_odd(form, "sum"),
        f"%fused = fadd {kind} %high, %odd",
        f"%plain = fadd {kind} %product, %c",
        *_near(form),
        f"%result = select {flag} %vanishes, {kind} %plain, {kind} %fused",
        f"%mask = bitcast {flag} %near to {mask}",
        f"%all = icmp eq {mask} %mask, -1",
        "br i1 %all, label %done, label %other",
        "done:",
        f"ret {kind} %result",
        "other:",
        f"%far = call {kind} {far.symbol}({', '.join(f'{kind} %{v}' for v in 'abc')})",
    ]
    return _function(form, "abc", lines, "%far", "noinline")


def _product(form: FloatForm) -> list[str]:
    """The product of a and b, and its exact error (Dekker, by halves of 26 bits)."""
    kind, lines = form.float, [f"%product = fmul {form.float} %a, %b"]
    for v in "ab":
        lines += [
            f"%{v}.up = fmul {kind} %{v}, {form.all('134217729.0', 'double')}",
            f"%{v}.over = fsub {kind} %{v}.up, %{v}",
            f"%{v}.high = fsub {kind} %{v}.up, %{v}.over",
            f"%{v}.low = fsub {kind} %{v}, %{v}.high",
        ]
    rest = "%whole"
    lines += [f"%first = fmul {kind} %a.high, %b.high", f"{rest} = fsub {kind} %first, %product"]
    for x, y, name in (("high", "low", "%second"), ("low", "high", "%third"), ("low", "low", "%product.error")):
        lines += [f"%{x}.{y} = fmul {kind} %a.{x}, %b.{y}", f"{name} = fadd {kind} {rest}, %{x}.{y}"]
        rest = name
    return lines


def _near(form: FloatForm) -> list[str]:
    """``%near``, whether numbers are in the range; ``%vanishes``, whether a or b is 0."""
    kind, flag, suffix, zero = form.float, form.of("i1"), form.symbol.split(".", 2)[2], form.all("0.0", "double")
    largest, least = (form.all(f"0x{struct.pack('>d', bound).hex()}", "double") for bound in (LARGEST, LEAST))
    return [
        *(f"%{v}.size = call {kind} @llvm.fabs.{suffix}({kind} %{v})" for v in ("a", "b", "c", "product")),
        *(f"%{v}.fits = fcmp olt {kind} %{v}.size, {largest}" for v in "abc"),
        f"%product.fits = fcmp ogt {kind} %product.size, {least}",
        *(f"%{v}.vanishes = fcmp oeq {kind} %{v}, {zero}" for v in "ab"),
        f"%vanishes = or {flag} %a.vanishes, %b.vanishes",
        f"%exact = or {flag} %product.fits, %vanishes",
        f"%factors = and {flag} %a.fits, %b.fits",
        f"%all.fit = and {flag} %factors, %c.fits",
        f"%near = and {flag} %all.fit, %exact",
    ]


def _far(form: FloatForm) -> str:
    if form.lanes:
        return _by_parts(form, 1, lambda k: f"call double {ONE.symbol}({_parts(k, 'double')})")
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

"""What a finished module may hold: refuses what could give floats other bits than the contract's, or asks for more.

It reads LLVM's text, behind all that LLVM did to it.
"""

import re
from typing import NamedTuple

FLAGS = re.compile(
    r"\b(?:f(?:add|sub|mul|div|rem|neg|cmp)|call|select|phi)\b(?: \w+)* "
    r"\b(?:fast|nnan|ninf|nsz|reassoc|contract|arcp|afn)\b"
)
FUSING = re.compile(r"@llvm\.(?:fmuladd|experimental\.constrained)\b")
HALF = re.compile(r"\b(?:half|bfloat|x86_fp80|fp128)\b")
LIMITED = re.compile(
    r'"(?:unsafe-fp-math|no-signed-zeros-fp-math|approx-func-fp-math|no-nans-fp-math)"="true"|"denormal-fp-math[\w-]*"'
)
CALLED = re.compile(r"\bcall\b[^@\n]*@(\"[^\"]*\"|[\w.$-]+)\(")
DEFINED = re.compile(r"^define [^@\n]*@(\"[^\"]*\"|[\w.$-]+)\(", re.MULTILINE)

NAMES = """
abs assume bitreverse bswap copysign ctlz ctpop cttz fabs fma fshl fshr scmp smax smin sqrt ucmp umax umin
ceil floor nearbyint rint roundeven trunc
sadd.sat sadd.with.overflow smul.with.overflow ssub.sat ssub.with.overflow
uadd.sat uadd.with.overflow umul.with.overflow usub.sat usub.with.overflow
experimental.noalias.scope.decl lifetime.end lifetime.start
masked.gather masked.load masked.scatter masked.store memcpy memmove memset prefetch
vector.extract vector.insert vector.reduce.add vector.reduce.and vector.reduce.mul vector.reduce.or vector.reduce.smax
vector.reduce.smin vector.reduce.umax vector.reduce.umin vector.reduce.xor
aarch64.get.fpcr aarch64.set.fpcr arm.get.fpscr arm.set.fpscr get.rounding set.rounding wasm.relaxed.madd
x86.sse.ldmxcsr x86.sse.stmxcsr
"""

ALLOWED = frozenset(NAMES.split())
"""What may be called of LLVM: it computes whole numbers, moves, or rounds correctly."""


class Refusal(NamedTuple):
    """A line of a module that is refused, and why."""

    text: str
    reason: str


def findings(module: str) -> list[Refusal]:
    """What is refused, in the order of the lines.

    >>> findings("  %x = fadd fast float %a, %b")[0].reason
    'lets floats be computed otherwise than they are written'
    """
    found, own = list[Refusal](), set(DEFINED.findall(module))
    for line in module.splitlines():
        if reason := _reason(line, own):
            found.append(Refusal(line.strip(), reason))
    return found


def _reason(line: str, own: set[str]) -> str:
    code = re.sub(r'c?"(?:[^"\\]|\\.)*"', '""', line) if not line.lstrip().startswith("attributes") else line
    if LIMITED.search(code) or FLAGS.search(code):
        return "lets floats be computed otherwise than they are written"
    if FUSING.search(code):
        return "may fuse a product with a sum, or not"
    if HALF.search(code):
        return "computes in a type that the contract has not"
    if called := CALLED.search(code):
        name = called[1]
        if name not in own and _intrinsic(name) not in ALLOWED:
            return f"calls {name}, which is not among what may be called"
    return ""


def _intrinsic(name: str) -> str:
    """The name of LLVM's function without the types it is of."""
    return re.sub(r"(?:\.(?:v\d+|p0|i\d+|f\d+|v\d+[a-z]\d+|v\d+p0))+$", "", name.removeprefix("llvm."))

"""What PTX may hold: refuses instructions whose floats could have other bits than the contract's.

It reads text, whoever wrote it: NVRTC, or LLVM for kernels that are translated.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

FLOATS = r"(?:f16x2|f16|bf16x2|bf16|tf32|f32x2|f32|f64)"


class Refusal(NamedTuple):
    """A line of PTX that is refused, and why."""

    line: int
    text: str
    reason: str


RULES = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"\.ftz\b", "flushes subnormals to zero"),
        (r"\.approx\b|\.full\b", "approximates"),
        (r"^(?:ex2|lg2|sin|cos|tanh|rsqrt)\.", "approximates"),
        (rf"^(?:add|sub|mul|mad|fma|div|sqrt|rcp)(?!\.rn\b)(?:\.\w+)*\.{FLOATS}$", "is not said to round to nearest"),
        (r"^(?:add|sub|mul|mad|fma|div|sqrt|rcp)(?:\.\w+)*\.(?:f16x2|f16|bf16x2|bf16)$", "computes in half precision"),
        (r"^cvt(?!\.rn\b)(?:\.\w+)*\.f(?:16|32)\.f64$", "is not said to round to nearest"),
        (r"^cvt(?!\.rn\b)(?:\.\w+)*\.f(?:16|32|64)\.[su]\d+$", "is not said to round to nearest"),
        (r"\.sat\b", "saturates"),
        (rf"^(?:atom|red|redux|multimem)(?:\.\w+)*\.{FLOATS}$", "combines floats in no fixed order"),
        (rf"^(?:min|max)(?:\.\w+)*\.{FLOATS}$", "drops NaN and orders zeros as it likes"),
        (r"^(?:mma|wmma|wgmma|tcgen05)\b", "sums in the hardware's order"),
    )
)
"""Of an instruction, without its predicate and operands, what is refused."""

INSTRUCTION = re.compile(r"^(?:@!?%?\w+\s+)?([a-z]\w*(?:(?:::|\.)[\w:]+)*)\b")
FUSED = re.compile(r"^fma\.rn\.f(?:32|64)$")
COMMENT = re.compile(r"//.*|/\*.*?\*/")


def instructions(ptx: str) -> Iterator[tuple[int, str, str]]:
    """(line, instruction, text) of everything that PTX says to do: several may stand on a line."""
    for number, line in enumerate(ptx.splitlines(), 1):
        for part in re.split(r"[;{}]", COMMENT.sub("", line)):
            text = part.strip()
            if text and not text.startswith(".") and (found := INSTRUCTION.match(text)):
                yield number, found[1], text


def findings(ptx: str) -> list[Refusal]:
    """What is refused, in the order of the lines.

    >>> findings("add.rn.f32 %f3, %f1, %f2; add.ftz.f32 %f3, %f1, %f2;")[0].reason
    'flushes subnormals to zero'
    """
    found: list[Refusal] = []
    for line, instruction, text in instructions(ptx):
        reason = next((reason for pattern, reason in RULES if pattern.search(instruction)), None)
        if reason:
            found.append(Refusal(line, text, reason))
    return found


def fused(ptx: str) -> int:
    """How many fused multiply-adds stand in PTX: none may stand where none is written.

    >>> fused("fma.rn.f32 %f4, %f1, %f2, %f3; mad.lo.s32 %r4, %r1, %r2, %r3;")
    1
    """
    return sum(bool(FUSED.match(instruction)) for _, instruction, _ in instructions(ptx))

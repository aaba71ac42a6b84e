"""The rules of a record, in words: one function a rule, each given the record that breaks it."""

from collections.abc import Callable
from dataclasses import dataclass

from ....base.ulp import ulp_distance
from ...exit_codes import Exit
from .. import compiled
from ..layout import FLOAT_FIELDS, HeaderV1, Record, record_crc32
from ..report import table, three_ways
from .diagnosis import diagnose, with_fma


@dataclass(frozen=True)
class Failure:
    """A broken rule: the exit code that it asks for, and what to tell people."""

    exit: Exit
    text: str


@dataclass(frozen=True)
class Broken:
    """A record that breaks rules, with what the texts need; `before` is the record of the previous step."""

    step: int
    raw: bytes
    before: Record | None
    header: HeaderV1
    ulp_tol: int

    @property
    def record(self) -> Record:
        """The record's fields."""
        return Record.unpack(self.raw)


def _record_crc(broken: Broken) -> str:
    stored, computed = broken.record.record_crc32, record_crc32(broken.raw)
    return f"record_crc32 is {stored:08x}, bytes 0..63 of the record give {computed:08x}: corruption"


def _pad(broken: Broken) -> str:
    return f"pad0 is {broken.record.pad0:#010x}, expected zero"


def _step_id(broken: Broken) -> str:
    return f"step_id is {broken.record.step_id}, expected {broken.step}: records are missing, repeated or moved"


def _chain(name: str) -> Callable[[Broken], str]:
    def text(broken: Broken) -> str:
        before, after = getattr(broken.record, f"{name}_before"), getattr(broken.before, f"{name}_after")
        rows = table([(f"step {broken.step - 1}", three_ways(after)), (f"step {broken.step}", three_ways(before))])
        return f"{name}_before is not {name}_after of step {broken.step - 1}\n{rows}"

    return text


def _not_finite(broken: Broken) -> str:
    values = [(name, getattr(broken.record, name)) for name in FLOAT_FIELDS]
    named = ", ".join(f"{name} is {value!r}" for name, value in values if value - value != 0)
    return f"{named}; expected finite values"


def _negative_loss(broken: Broken) -> str:
    return f"loss is {broken.record.loss!r}, expected 0 or more"


def _diagnosis(broken: Broken) -> str:
    if broken.record.record_crc32 != record_crc32(broken.raw):
        return "corruption: record_crc32 does not fit either"
    return diagnose(broken.header.seed, broken.step, broken.record)


def _fma_hint(value: float, learning_rate: float, gradient: float, stored: float) -> str:
    try:
        fused = with_fma(value, learning_rate, gradient)
    except OverflowError:
        return "no: it overflows"
    if fused == stored:
        return "yes: a fused multiply-add gives the stored value, so the writer contracted the update"
    return f"no: a fused multiply-add gives {fused!r}"


def _update(name: str) -> Callable[[Broken], str]:
    def text(broken: Broken) -> str:
        before = getattr(broken.record, f"{name}_before")
        gradient, stored = getattr(broken.record, f"grad_{name}"), getattr(broken.record, f"{name}_after")
        learning_rate = broken.header.learning_rate
        recomputed = compiled.updated(before, learning_rate, gradient)
        rows = [
            ("recomputed", three_ways(recomputed)),
            ("stored", three_ways(stored)),
            ("distance", f"{ulp_distance(recomputed, stored)} ULP, allowed {broken.ulp_tol}"),
            ("FMA", _fma_hint(before, learning_rate, gradient, stored)),
            ("diagnosis", _diagnosis(broken)),
        ]
        return f"{name}_after is not {name}_before - learning_rate*grad_{name}\n{table(rows)}"

    return text


def _loss(broken: Broken) -> str:
    e = broken.record.grad_b / 2
    rows = [
        ("recomputed", three_ways(e * e)),
        ("stored", three_ways(broken.record.loss)),
        ("diagnosis", _diagnosis(broken)),
    ]
    return f"loss is not (grad_b/2)^2\n{table(rows)}"


# In the order in which they count within a record.
_RULES: tuple[tuple[int, Exit, Callable[[Broken], str]], ...] = (
    (compiled.RECORD_CRC, Exit.VALIDATION, _record_crc),
    (compiled.PAD, Exit.VALIDATION, _pad),
    (compiled.STEP_ID, Exit.VALIDATION, _step_id),
    (compiled.CHAIN_W, Exit.VALIDATION, _chain("w")),
    (compiled.CHAIN_B, Exit.VALIDATION, _chain("b")),
    (compiled.NOT_FINITE, Exit.VALIDATION, _not_finite),
    (compiled.NEGATIVE_LOSS, Exit.VALIDATION, _negative_loss),
    (compiled.UPDATE_W, Exit.REPLAY, _update("w")),
    (compiled.UPDATE_B, Exit.REPLAY, _update("b")),
    (compiled.LOSS, Exit.VALIDATION, _loss),
)


def explain(broken: Broken, rules: int) -> list[Failure]:
    """Put each rule of the set `rules` that the record breaks into words."""
    return [Failure(exit, f"step {broken.step}: {text(broken)}") for bit, exit, text in _RULES if rules & bit]

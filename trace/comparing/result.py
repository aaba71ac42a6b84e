"""What a comparison says: whether two runs are the same, and if not, where they part, why, and by how much."""

import sys
from dataclasses import dataclass, field
from enum import Enum
from textwrap import wrap
from typing import Any

from ..v2.verdict import Verdict
from .losses import ASCII, BLOCKS, LossCurves
from .ops import OpDifference
from .settings import Differing, table
from .tensors import WORST, TensorDifference, plain

LINES, COLUMNS = 40, 100
"""The size of a screen."""

_IN_FULL = 5
_FEWEST_KEYS = 4


class Cause(Enum):
    """Why two runs part: the first thing that differs, in the order in which a run does them."""

    NUMERICS = "numerics"
    MODEL = "model"
    RULE = "rule"
    START = "start"
    DATA = "data"
    ENVIRONMENT = "environment"
    GRADIENT = "gradient"
    UPDATE = "update"
    LENGTH = "length"


@dataclass(slots=True, eq=False)
class Comparison:
    """What `compare` found. True if the two runs are the same.

    Args:
        a, b: the paths of the traces.
        verdict: ok, diverged, numerics (another numerics version: no bits are promised), unproven (what would have to
            be compared is not recorded), or why one of the files cannot be read.
        cause: why they part; None unless the verdict is diverged or numerics.
        step: the first step that differs; None: none, or what differs was there before step 0.
        sentence: the answer in one sentence.
        tensors: what differs at that step, in order of execution.
        op: the first op that differs, where the digests of ops are recorded.
        settings: what the runs were told, by key, where it differs.
        environment: where they ran, by key, where it differs.
        losses: both losses, if they part.
        notes: what the reader must know besides, such as what was not recorded.
    """

    a: str
    b: str
    verdict: Verdict
    sentence: str
    cause: Cause | None = None
    step: int | None = None
    tensors: list[TensorDifference] = field(default_factory=list[TensorDifference])
    op: OpDifference | None = None
    settings: Differing = field(default_factory=Differing)
    environment: Differing = field(default_factory=Differing)
    losses: LossCurves | None = None
    notes: list[str] = field(default_factory=list[str])

    @property
    def same(self) -> bool:
        """Whether the two runs are the same, as far as the policy asks."""
        return self.verdict is Verdict.OK

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        return "\n".join(self._lines(_characters()))

    def _lines(self, characters: str) -> list[str]:
        lines = [*_wrapped(f"{self._word()}: {self.sentence}", ""), f"  a: {self.a}", f"  b: {self.b}"]
        lines += [line for note in self.notes for line in _wrapped(note, "  ")]
        lines += [] if self.op is None else self.op.lines()
        lines += self._tensor_lines()
        lines += [] if self.losses is None else self.losses.lines(self.step, characters)
        for title, rows in (("settings", self.settings), ("parts of the environment", self.environment)):
            room = max(LINES - len(lines) - 2, _FEWEST_KEYS)
            lines += table(f"{title} that differ (a -> b)", rows, room)
        return lines

    def _word(self) -> str:
        """The verdict, and the cause if it says more."""
        cause = "" if self.cause is None else self.cause.value
        return f"{self.verdict.value} ({cause})" if cause not in ("", self.verdict.value) else self.verdict.value

    def _tensor_lines(self) -> list[str]:
        """The first tensor with its worst elements, some more in short, the rest counted."""
        lines: list[str] = []
        told = [t for i, t in enumerate(self.tensors) if not i or t.recorded or t.only_in][:_IN_FULL]
        for i, tensor in enumerate(told):
            lines += tensor.lines(worst=0 if i else WORST)
        rest = [t.title for t in self.tensors if t not in told]
        more = f" and {len(rest) - _IN_FULL} more" if len(rest) > _IN_FULL else ""
        return lines + (_wrapped(f"also different: {', '.join(rest[:_IN_FULL])}{more}", "") if rest else [])

    def to_dict(self) -> dict[str, Any]:
        """The same in plain types, for JSON."""
        return {
            "a": self.a,
            "b": self.b,
            "same": self.same,
            "verdict": self.verdict.value,
            "cause": None if self.cause is None else self.cause.value,
            "step": self.step,
            "sentence": self.sentence,
            "notes": list(self.notes),
            "op": None if self.op is None else self.op.to_dict(),
            "tensors": [tensor.to_dict() for tensor in self.tensors],
            "losses": None if self.losses is None else self.losses.to_dict(),
            "settings": _plain_pairs(self.settings),
            "environment": _plain_pairs(self.environment),
        }


def _wrapped(text: str, indent: str) -> list[str]:
    return wrap(text, COLUMNS, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False)


def _plain_pairs(rows: Differing) -> dict[str, list[Any]]:
    return {key: [plain(value) for value in pair] for key, pair in rows.items()}


def _characters() -> str:
    """Blocks where the terminal can show them."""
    try:
        BLOCKS.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS

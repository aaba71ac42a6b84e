"""What a comparison says: whether two runs are the same, and if not, where they part, why, and by how much."""

from dataclasses import dataclass, field
from enum import Enum
from textwrap import wrap
from typing import ClassVar

from ...base.printed import facts, panel, text
from ...screen.curves import ASCII, BLOCKS
from ...screen.panels import folded, grid
from ...screen.showing import characters, shown_rows
from ..json_value import Plain
from ..v2.read.op_digests import OpDigests
from ..v2.verdict import Verdict
from .calls.call_difference import CallDifference
from .losses import LossCurves
from .ops import OpDifference
from .settings import Differing, table
from .tensors import WORST, TensorDifference

LINES, COLUMNS = 40, 100
"""The size of a screen."""

_IN_FULL = 5
_BY_NAME = 4
_FEWEST_ROWS = 3


class Cause(Enum):
    """Why two runs part: the first thing that differs, in the order in which a run does them.

    >>> [cause.value for cause in Cause]
    ['numerics', 'model', 'rule', 'start', 'data', 'environment', 'gradient', 'update', 'length', 'replica']
    """

    NUMERICS = "numerics"
    MODEL = "model"
    RULE = "rule"
    START = "start"
    DATA = "data"
    ENVIRONMENT = "environment"
    GRADIENT = "gradient"
    UPDATE = "update"
    LENGTH = "length"
    REPLICA = "replica"


@dataclass(slots=True, eq=False)
class Comparison(Plain):
    """What `compare` found. True if the two runs are the same.

    Args:
        a, b: the paths of the traces.
        verdict: ok, diverged, drift (under that policy: the same code on another machine or library), numerics (another
            numerics version, which promises no equal bits), unproven (what must be compared is not recorded), or why
            one of the files cannot be read.
        cause: why they part; None unless the verdict is diverged or numerics.
        step: the first step that differs; None: none, or the difference comes before step 0.
        sentence: the answer in one sentence.
        tensors: what differs at that step, in order of execution.
        op: the first op that differs, where the digests of ops are recorded.
        call: the first call of an op inside that step that differs, where calls are recorded.
        settings: settings of the runs that differ, by key.
        environment: environments of the runs, by key, where they differ.
        losses: both losses, if they part.
        notes: further remarks, such as what was not recorded.
        uncomputed: first and last of the steps before `step` that were neither compared nor computed.
        ops: the digests of all ops of that step, or of the first if the runs start differently, if both record them.
        uncompared: of runs that are the same, how many digests differ of which no values are recorded.
        ranks: of two folders, the comparison of each process in turn; this one is that of the first that differs.

    >>> print(Comparison("a.dgrr", "b.dgrr", Verdict.DIVERGED, "equal to the bit for 4 steps", Cause.LENGTH, 4))
    diverged (length): equal to the bit for 4 steps
      a: a.dgrr
      b: b.dgrr
    """

    _keys: ClassVar = (
        *("a", "b", "same", "verdict", "cause", "step", "sentence", "notes", "op", "call", "tensors", "losses"),
        *("settings", "environment", "uncomputed", "ranks"),
    )

    a: str
    b: str
    verdict: Verdict
    sentence: str
    cause: Cause | None = None
    step: int | None = None
    tensors: list[TensorDifference] = field(default_factory=list[TensorDifference])
    op: OpDifference | None = None
    call: CallDifference | None = None
    settings: Differing = field(default_factory=Differing)
    environment: Differing = field(default_factory=Differing)
    losses: LossCurves | None = None
    notes: list[str] = field(default_factory=list[str])
    uncomputed: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    ops: tuple[OpDigests, OpDigests] | None = None
    uncompared: int = 0
    ranks: "list[Comparison]" = field(default_factory=list["Comparison"])

    @property
    def same(self) -> bool:
        """Whether the two runs are the same, as far as the policy asks."""
        return self.verdict is Verdict.OK

    @property
    def compared(self) -> bool:
        """Whether both runs could be read, so that it is an answer."""
        return self.verdict in (Verdict.OK, Verdict.UNPROVEN) or self.cause is not None

    def __bool__(self) -> bool:
        return self.same

    def _repr_html_(self) -> str:
        """What differs as tables, in a notebook, and all that is printed below them."""
        rows: dict[str, object] = {"a": self.a, "b": self.b}
        if self.op is not None:
            rows["op"] = "\n".join(line.strip() for line in self.op.lines())
        if self.notes:
            rows["notes"] = "\n".join(self.notes)
        parts = [facts(rows)]
        if self.tensors:
            told = [[of.title, of.dtype, str(of.shape), of.figures()] for of in self.tensors]
            first, last = shown_rows(len(told))
            shown = told[: first.stop], told[last.start :] if last else [], last.start - first.stop
            parts.append(grid((f"differs at step {self.step}", "dtype", "shape", "by how much"), *shown))
        for title, differing in (("setting", self.settings), ("environment", self.environment)):
            if differing:
                parts.append(grid((title, "a", "b"), [[key, *map(str, both)] for key, both in differing.items()]))
        return panel(f"{self.word}: {self.sentence}", *parts, folded("as text", text(str(self))))

    def __str__(self) -> str:
        return "\n".join(self._lines(characters(BLOCKS, ASCII)))

    def _lines(self, levels: str) -> list[str]:
        head = [*_wrapped(f"{self.word}: {self.sentence}", ""), f"  a: {self.a}", f"  b: {self.b}"]
        head += [line for note in self.notes for line in _wrapped(note, "  ")]
        named = [each for each in (self.call, self.op) if each is not None]
        for line in [line for each in named for line in each.lines()]:
            head += _wrapped(line.strip(), "  " if line.startswith(" ") else "")
        losses = [] if self.losses is None else self.losses.lines(self.step, levels)
        room = LINES - len(head) - len(losses) - _least(self.settings) - _least(self.environment)
        lines = head + self._tensor_lines(room) + losses
        lines += table("settings that differ (a -> b)", self.settings, LINES - len(lines) - _least(self.environment))
        return lines + table("parts of the environment that differ (a -> b)", self.environment, LINES - len(lines))

    @property
    def word(self) -> str:
        """The verdict, and the cause if it says more."""
        cause = "" if self.cause is None else self.cause.value
        return f"{self.verdict.value} ({cause})" if cause not in ("", self.verdict.value) else self.verdict.value

    def _tensor_lines(self, room: int) -> list[str]:
        """The first tensor with its worst elements, some more in short, the rest by name or counted."""
        if not self.tensors:
            return []
        first, *others = self.tensors
        lines = first.lines(worst=WORST)
        told = [t for t in others if t.recorded or t.only_in]
        told = told[: max(min(_IN_FULL - 1, (room - len(lines) - 3) // 2), 0)]
        lines += [line for tensor in told for line in tensor.lines(worst=0)]
        rest = [t.title for t in others if t not in told]
        more = f" and {len(rest) - _BY_NAME} more" if len(rest) > _BY_NAME else ""
        return lines + (_wrapped(f"also different: {', '.join(rest[:_BY_NAME])}{more}", "") if rest else [])


def _least(rows: Differing) -> int:
    """How many lines the table of these keys takes at least."""
    return min(len(rows), _FEWEST_ROWS) + 1 if rows else 0


def _wrapped(text: str, indent: str) -> list[str]:
    return wrap(text, COLUMNS, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False)

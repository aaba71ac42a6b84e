"""The answer of `validate` and `replay`: one verdict, what is proven, and what was found."""

from dataclasses import dataclass, field
from typing import Literal

from ...exit_codes import Exit
from ..verdict import Verdict

Proof = Literal["proven", "failed", "not proven"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or could not be checked: its verdict, a sentence, and where."""

    verdict: Verdict
    text: str
    step: int | None = None
    tensor: str | None = None

    def __str__(self) -> str:
        where = [f"step {self.step}"] if self.step is not None else []
        where += [f"'{self.tensor}'"] if self.tensor is not None else []
        return f"{self.verdict.value}: {', '.join(where)}{': ' if where else ''}{self.text}"


@dataclass(slots=True)
class Report:
    """What was asked of a trace and how it went.

    `structure`, `chain`, `update`, `gradient` and `data` are each `proven`, `failed` or `not proven`.
    `findings` stand in file order, and the first decides the verdict. A report is true if it is ok.
    """

    path: str
    version: int
    steps: int = 0
    structure: Proof = "not proven"
    chain: Proof = "not proven"
    update: Proof = "not proven"
    gradient: Proof = "not proven"
    data: Proof = "not proven"
    findings: list[Finding] = field(default_factory=list[Finding])
    notes: list[str] = field(default_factory=list[str])

    @property
    def verdict(self) -> Verdict:
        """The word of the first finding, or `ok`."""
        return self.findings[0].verdict if self.findings else Verdict.OK

    @property
    def exit_code(self) -> Exit:
        """The exit code that belongs to the verdict."""
        return self.verdict.exit_code

    @property
    def ok(self) -> bool:
        """Whether everything that was asked for is proven."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.verdict.value} (version {self.version}, {self.steps} steps)"]
        checks = ("structure", "chain", "update", "gradient", "data")
        lines += [f"  {name:<10} {getattr(self, name)}" for name in checks]
        lines += [f"  {finding}" for finding in self.findings]
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)

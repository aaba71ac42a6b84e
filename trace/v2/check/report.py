"""The answer of `validate` and `replay`: one verdict, what is proven, and what was found."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from ....base.printed import aligned, facts, panel
from ...exit_codes import Exit
from ...json_value import Plain
from ..verdict import Verdict

SHA256_DIGITS = 64
Proof = Literal["proven", "failed", "not proven"]
PROOFS = ("structure", "chain", "update", "gradient", "data")


@dataclass(frozen=True, slots=True)
class Finding(Plain):
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
class Report(Plain):
    """What was asked of a trace and how it went.

    `structure`, `chain`, `update`, `gradient` and `data` are each `proven`, `failed` or `not proven`.
    `findings` stand in file order, and the first decides the verdict. A report is true if it is ok.

    >>> Report("run.dgrr", 2, steps=3, structure="proven").to_dict()["structure"]
    'proven'
    """

    _keys: ClassVar = ("path", "version", "steps", "verdict", *PROOFS, "findings", "notes", "root", "start")

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
    root: str | None = None
    """The last digest of a sealed trace of version 2, by which all of it can be published or signed."""
    start: str | None = None
    """The state root before step 0 of a trace of version 2: that of all tensors that training begins with."""

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

    @property
    def signable(self) -> bool:
        """Whether the root is a SHA-256 digest; others do not stop a forger."""
        return self.root is not None and len(self.root) == SHA256_DIGITS

    def __bool__(self) -> bool:
        return self.ok

    @property
    def proofs(self) -> dict[str, Proof]:
        """What is proven of structure, chain, update, gradient and data, by these names."""
        return {name: getattr(self, name) for name in PROOFS}

    def _repr_html_(self) -> str:
        """What is proven and what was found, in a notebook."""
        rows: dict[str, object] = {**self.proofs}
        if self.signable:
            rows["root"] = self.root
        for name, lines in (("found", self.findings), ("notes", self.notes)):
            if lines:
                rows[name] = "\n".join(map(str, lines))
        return panel(self._title(), facts(rows))

    def _title(self) -> str:
        return f"{self.path}: {self.verdict.value} (version {self.version}, {self.steps} steps)"

    def __str__(self) -> str:
        lines = [self._title()]
        lines.append(aligned((self.proofs | ({"root": self.root} if self.signable else {})).items()))
        lines += [f"  {finding}" for finding in self.findings]
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)

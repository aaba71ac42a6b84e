"""What a verification found: one line per check."""

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any

from ....base.errors import DgrrError
from ....tape.values.tables import PlainTable, Tabled


class CheckError(DgrrError):
    """What is wrong, as a check says it: the node, value or step is named."""


@dataclass(frozen=True)
class Check:
    """One check: whether it held, and what was looked at or what is wrong."""

    name: str
    _: KW_ONLY
    held: bool
    detail: str

    def __str__(self) -> str:
        return f"[{'OK' if self.held else 'FAIL'}] {self.name}: {self.detail}"


@dataclass(frozen=True, repr=False)
class VerifyReport(Tabled):
    """Every check of a captured step, in the order in which they ran."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check held."""
        return not self.failures

    @property
    def failures(self) -> list[Check]:
        """The checks that did not hold."""
        return [check for check in self.checks if not check.held]

    def table(self) -> PlainTable:
        """One row per check."""
        columns = ("check", "held", "detail")
        rows = [{"check": c.name, "held": "yes" if c.held else "NO", "detail": c.detail} for c in self.checks]
        return PlainTable(f"verification: {len(self.checks)} checks, {len(self.failures)} failed", columns, rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain types: whether every check held, and each with its name, whether it held, and its detail.

        >>> VerifyReport((Check("graphs", held=True, detail="3 of 3"),)).to_dict()
        {'ok': True, 'checks': [{'name': 'graphs', 'held': True, 'detail': '3 of 3'}]}
        """
        return {"ok": self.ok, "checks": [asdict(check) for check in self.checks]}

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))

    def __bool__(self) -> bool:
        return self.ok

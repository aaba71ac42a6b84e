"""What became of the golden files of a run, and which of them no test has used."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..json_value import Plain
from .names import SUFFIX

OUTCOMES = ("verified", "verified in part", "written", "updated", "deleted", "failed")
"""What becomes of a golden file, as the summary counts it."""


@dataclass
class Results(Plain):
    """The golden files of one process; those of several processes are added.

    Args:
        counts: how many files were verified, whole or in part, written, updated, deleted, failed.
        used: their names below the folder of golden files, without suffix.
        takers: folder of a module → its tests that take `golden_trace`, or the module itself where it was skipped.
        finished: the tests that have come to their comparison.
        whole: whether every test of the project was collected, so that files without a test are unused.
        tests: folder of a module → all of its tests, where files that none of them has used are deleted.
        ended: the tests that have passed.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    used: set[str] = field(default_factory=set[str])
    takers: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    finished: set[str] = field(default_factory=set[str])
    whole: bool = True
    tests: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    ended: set[str] = field(default_factory=set[str])

    def take(self, folder: str, test: str) -> None:
        """Note a test that may use golden files of a folder."""
        self.takers.setdefault(folder, set()).add(test)

    def add(self, sent: dict[str, Any]) -> None:
        """Add what another process has sent."""
        self.counts.update(sent["counts"])
        self.used.update(sent["used"])
        for folder, tests in sent["takers"].items():
            self.takers.setdefault(folder, set()).update(tests)
        for folder, tests in sent["tests"].items():
            self.tests.setdefault(folder, set()).update(tests)
        self.finished.update(sent["finished"])
        self.ended.update(sent["ended"])
        self.whole &= sent["whole"]

    def unused(self, golden: Path) -> list[str]:
        """The golden files, without suffix, that no test has used; none where that cannot be known.

        A file counts if its module is gone, or if every test of its module that could use it came to its comparison.
        """
        if not self.whole:
            return []
        return [name for name in self._not_used(golden) if self._is_known(name.rpartition("/")[0])]

    def abandoned(self, golden: Path) -> list[str]:
        """The golden files, without suffix, that no test of their module has used, all of which have passed."""
        whole = {folder for folder, tests in self.tests.items() if tests <= self.ended}
        return [name for name in self._not_used(golden) if name.rpartition("/")[0] in whole]

    def _not_used(self, golden: Path) -> list[str]:
        """Names that differ in the case of letters alone may be one file."""
        used = {name.casefold() for name in self.used}
        names = (path.relative_to(golden).as_posix().removesuffix(SUFFIX) for path in golden.glob(f"*/**/*{SUFFIX}"))
        return sorted(name for name in names if name.casefold() not in used)

    def _is_known(self, folder: str) -> bool:
        return self.takers.get(folder, set()) <= self.finished

    def summary(self, unused: Iterable[str]) -> str:
        """``dgrr: 3 verified, 1 updated, 2 unused``; nothing where there is nothing to say.

        >>> Results(Counter(verified=3, updated=1)).summary(["a/b", "a/c"])
        'dgrr: 3 verified, 1 updated, 2 unused'
        >>> Results(Counter({"verified in part": 1})).summary([])
        'dgrr: 1 verified in part'
        """
        counts = {**{name: self.counts[name] for name in OUTCOMES}, "unused": len(list(unused))}
        text = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f"dgrr: {text}" if text else ""

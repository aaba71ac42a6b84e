"""What a reader expects a trace to say of its run, from elsewhere: a trace cannot vouch for its own seed."""

from dataclasses import dataclass

from ..file_version import TraceFileError, os_errors_named
from ..v1.layout import HEADER_SIZE, Header as HeaderV1
from ..v2.check.report import Finding, Report
from ..v2.read.reader import open_trace
from ..v2.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Expected:
    """The seed and the numerics version that a run is said to have; None stands for any."""

    seed: int | None = None
    numerics: int | None = None

    def findings(self, report: Report) -> list[Finding]:
        """How the header of a trace that was validated differs from it; nothing where it has none to read."""
        if self == Expected():
            return []
        try:
            seed, numerics = _recorded(report)
        except TraceFileError:  # cut within its beginning, as the report says already
            return []
        found = list[Finding]()
        if self.seed not in (None, seed):
            found.append(Finding(Verdict.DATA, f"seed: expected {self.seed}, the trace says {seed}"))
        if self.numerics not in (None, numerics):
            said = "a trace of version 1 names none" if numerics is None else f"the trace says {numerics}"
            found.append(Finding(Verdict.NUMERICS, f"numerics version: expected {self.numerics}, {said}"))
        return found


def _recorded(report: Report) -> tuple[int, int | None]:
    """Seed and numerics version as the header has them."""
    if report.version == 1:
        with os_errors_named("read", report.path), open(report.path, "rb") as file:
            return HeaderV1.unpack(file.read(HEADER_SIZE)).seed, None
    with open_trace(report.path, mode="tolerate_tail") as trace:
        return trace.header.seed, trace.header.numerics

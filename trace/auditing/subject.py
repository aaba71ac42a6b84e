"""The trace that is audited: in order, sealed, and told from every other by its digests."""

import os

from ...base.errors import DgrrError
from ..file_version import os_errors_named
from ..replaying.expected import Expected
from ..replaying.validate import validate
from ..v2.check.report import Finding
from ..v2.format.constants import VERSION
from ..v2.read.reader import open_reader
from ..v2.verdict import Verdict
from .certificate import AuditedTrace


class AuditError(DgrrError):
    """A trace cannot be audited: `finding` has the verdict, and says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(f"audit: {finding}")
        self.finding = finding


def audited_trace(path: str, expected: Expected) -> AuditedTrace:
    """Validate a trace, and what tells it from others. Raises AuditError."""
    report = validate(path)
    findings = expected.findings(report) or report.findings
    if findings:
        raise AuditError(findings[0])
    if report.version != VERSION:
        raise AuditError(Finding(Verdict.UNPROVEN, "a trace of version 1 holds no states to start from: replay it"))
    with open_reader(path) as trace:
        header, seal = trace.header, trace.seal
        if seal is None:  # another file than the one that was validated
            raise AuditError(Finding(Verdict.UNSEALED, "the file has changed since it was validated"))
        digest = header.algorithm.name.lower().replace("_", "-")
        about = (digest, header.mode.name.lower(), len(trace), header.state_every, header.seed, header.numerics)
        return AuditedTrace(_last_bytes(trace.path, header.algorithm.size), seal.link.hex(), *about)


def _last_bytes(path: str, count: int) -> str:
    """The file chain behind the SEAL of a file that was validated: it stands at the end."""
    with os_errors_named("read", path), open(path, "rb") as file:
        file.seek(-count, os.SEEK_END)
        return file.read(count).hex()

"""Validation of a trace of either version."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...base.system import FilePath
from ..file_version import TraceFileError, TruncatedFileError, version_of
from ..v2.check.report import Finding, Report
from ..v2.check.validate import validate_v2
from ..v2.format.constants import VERSION
from ..v2.verdict import Verdict
from .expected import Expected, hold_root, require_expected, require_root

if TYPE_CHECKING:
    from ..v1.validation.validate import Validation


def validate(
    path: FilePath,
    *,
    expect_root: str | None = None,
    steps: int | None = None,
    expect_start: str | None = None,
    expect_rules: Sequence[str] = (),
) -> Report:
    """Check a trace against its format: structure, chains and digests; the content of the file raises nothing.

    `replay` checks the update law of a version 2 trace, its gradients and its data. Version 1 holds what its update law
    needs, which is checked here.

    `expect_root` is the known last digest of the trace, published or signed, as 64 digits; a different one is a
    finding, `chain`. The trace must be recorded with SHA-256; with XXH3-128 the answer is `unproven`.

    A trace that was cut and sealed again, or begun elsewhere, is consistent in itself. Pass what you know of the run; a
    difference is a finding, `chain`: `steps`, their number; `expect_start`, the state root before step 0, which a
    report has as ``start``; `expect_rules`, the names of all its rules, such as ``["adam@1"]``.

    Raises:
        DomainError: `expect_root` is no SHA-256 digest, or another expectation is none.
    """
    root = None if expect_root is None else require_root("validate", expect_root)
    expected = require_expected("validate", steps, expect_start, expect_rules)
    return held(_validated(os.fspath(path)), expected, root)


def held(report: Report, expected: Expected, root: str | None) -> Report:
    """The report of a trace that was validated, with how it differs from what is expected behind its own findings."""
    if root is not None:
        hold_root(report, root)
    report.findings += expected.findings(report)
    return report


def _validated(name: str) -> Report:
    try:
        version = version_of(name)
    except TruncatedFileError as error:
        return Report(name, 0, findings=[Finding(Verdict.TORN_TAIL, str(error))])
    except TraceFileError as error:
        return Report(name, 0, findings=[Finding(Verdict(error.exit.word), str(error))])
    if version == 1:
        return _validate_v1(name)
    if version == VERSION:
        return validate_v2(name)
    text = f"format version {version}; this library reads versions 1 and {VERSION}"
    return Report(name, version, findings=[Finding(Verdict.UNSUPPORTED, text)])


def _validate_v1(path: str) -> Report:
    from ..v1.reader import TraceReaderV1  # compiled, and so loaded only for a trace of version 1
    from ..v1.validation.validate import validate as validate_v1

    try:
        with TraceReaderV1(path) as trace:
            return report_v1(validate_v1(trace))
    except TraceFileError as error:
        return Report(path, 1, structure="failed", findings=[Finding(Verdict(error.exit.word), str(error))])


def report_v1(validation: "Validation") -> Report:
    """The validation of a trace of version 1 as a report."""
    report = Report(validation.path, 1, validation.header.step_count)
    report.findings = [Finding(Verdict(failure.exit.word), failure.text) for failure in validation.failures]
    verdicts = {finding.verdict for finding in report.findings}
    report.structure = "failed" if Verdict.CORRUPT in verdicts else "proven"
    report.chain = report.structure
    report.update = "failed" if Verdict.UPDATE in verdicts else report.structure
    if validation.reexecution:
        report.notes.append(f"re-execution: {validation.reexecution}")
    return report

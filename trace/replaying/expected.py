"""What a reader expects a trace to say of its run, from elsewhere: a trace cannot vouch for its own seed or length."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...base.errors import DomainError
from ..file_version import TraceFileError, os_errors_named
from ..v1.layout import HEADER_SIZE, HeaderV1
from ..v2.check.report import SHA256_DIGITS, Finding, Report
from ..v2.read.reader import open_reader
from ..v2.verdict import Verdict

_START_DIGITS = (32, 64)
"""Of XXH3-128 and SHA-256."""


class _Said(NamedTuple):
    """What a trace says of its run; None where its version has no such thing."""

    seed: int
    numerics: int | None
    rules: list[str] | None


@dataclass(frozen=True, slots=True)
class Expected:
    """What a run is said to have; None, and no rules, stand for any.

    `steps`: how many; `start`: the state root before step 0, in hexadecimal digits; `rules`: all rules by name and
    version, in the order of their groups.
    """

    seed: int | None = None
    numerics: int | None = None
    steps: int | None = None
    start: str | None = None
    rules: tuple[str, ...] = ()

    def findings(self, report: Report) -> list[Finding]:
        """How a trace that was validated differs from it; nothing where it has no header to read."""
        if self == Expected():
            return []
        try:
            said = _said(report)
        except TraceFileError:  # cut within its beginning, as the report says already
            return []
        found = list[Finding]()
        if self.seed not in (None, said.seed):
            found.append(Finding(Verdict.DATA, f"seed: expected {self.seed}, the trace says {said.seed}"))
        if self.numerics not in (None, said.numerics):
            text = "a trace of version 1 names none" if said.numerics is None else f"the trace says {said.numerics}"
            found.append(Finding(Verdict.NUMERICS, f"numerics version: expected {self.numerics}, {text}"))
        return found + self._other_run(report, said)

    def _other_run(self, report: Report, said: _Said) -> list[Finding]:
        """The same of what makes it another run: its length, its beginning, its rules."""
        texts = list[str]()
        if self.steps not in (None, report.steps):
            texts.append(f"steps: expected {self.steps}, the trace has {report.steps}: it was cut, or goes on")
        if self.start not in (None, report.start):
            other = f"begins with {report.start}" if report.start else "has none"
            texts.append(f"start: expected {self.start}, the trace {other}: it begins differently")
        if self.rules and list(self.rules) != said.rules:
            has = f"has {', '.join(said.rules)}" if said.rules else "names none"
            texts.append(f"rules: expected {', '.join(self.rules)}, the trace {has}")
        return [Finding(Verdict.CHAIN, text) for text in texts]


def require_expected(
    command: str, steps: int | None, expect_start: str | None, expect_rules: Sequence[str]
) -> Expected:
    """These of a run, from the arguments of a function. Raises DomainError that names both."""
    if steps is not None and (isinstance(steps, bool) or steps != int(steps) or steps < 0):
        raise DomainError(f"{command}: argument 'steps': expected a whole number of at least 0, got {steps!r}")
    if isinstance(expect_rules, str):
        expected = f"expected the names of all rules, got {expect_rules!r}; write [{expect_rules!r}]"
        raise DomainError(f"{command}: argument 'expect_rules': {expected}")
    try:
        start = None if expect_start is None else start_digits(expect_start)
    except ValueError as error:
        raise DomainError(f"{command}: argument 'expect_start': {error}") from None
    return Expected(steps=steps, start=start, rules=tuple(expect_rules))


def start_digits(given: object) -> str:
    """The hexadecimal digits of a state root, in small letters. Raises DomainError for anything else."""
    text = str(given).lower()
    if len(text) in _START_DIGITS and not text.strip("0123456789abcdef"):
        return text
    raise DomainError(f"expected the 32 or 64 hexadecimal digits of a state root, got {given!r}")


def _said(report: Report) -> _Said:
    if report.version == 1:
        with os_errors_named("read", report.path), open(report.path, "rb") as file:
            return _Said(HeaderV1.unpack(file.read(HEADER_SIZE)).seed, None, None)
    with open_reader(report.path, mode="tolerate_tail") as trace:
        header, groups = trace.header, trace.schema.groups
        return _Said(header.seed, header.numerics, [group.rule for group in groups])


# ------------------------------------------------------------------ the last digest, published or signed

_XXH3_DIGITS = 32


def root_digits(given: object) -> str:
    """The hexadecimal digits of a root, in small letters.

    Raises:
        DomainError: it is no SHA-256 digest.
    """
    text = given.lower() if isinstance(given, str) else ""
    if len(text) == SHA256_DIGITS and set(text) <= set("0123456789abcdef"):
        return text
    cure = "; one of 32 digits is of XXH3-128, which stops no forger" if len(text) == _XXH3_DIGITS else ""
    raise DomainError(f"expected the {SHA256_DIGITS} hexadecimal digits of a SHA-256 digest, got {given!r}{cure}")


def require_root(command: str, given: object) -> str:
    """The same of the argument of a function. Raises DomainError that names both."""
    try:
        return root_digits(given)
    except ValueError as error:
        raise DomainError(f"{command}: argument 'expect_root': {error}") from None


def hold_root(report: Report, expected: str) -> None:
    """Say in the report of a trace that was validated how its root differs from the expected one.

    Of a file with damage nothing is said: it has none.
    """
    if report.verdict not in (Verdict.OK, Verdict.UNSEALED):
        return
    if report.root is None:
        text = "a trace has one when it is sealed" if report.version > 1 else "traces of version 1 have none"
        report.findings.append(Finding(Verdict.UNPROVEN, f"root: expected {expected}, there is none: {text}"))
    elif not report.signable:
        text = "the trace is digested by XXH3-128, which stops no forger; record it with digest='sha256'"
        report.findings.append(Finding(Verdict.UNPROVEN, f"root: expected {expected}, and {text}"))
    elif report.root != expected:
        text = f"root: expected {expected}, the trace ends with {report.root}: it is another file, or another run"
        report.findings.append(Finding(Verdict.CHAIN, text))
        report.chain = "failed"

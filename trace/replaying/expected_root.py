"""The last digest that a trace is said to have, from elsewhere: published, or signed."""

from ..v2.check.report import SHA256_DIGITS, Finding, Report
from ..v2.verdict import Verdict

_XXH3_DIGITS = 32


def root_digits(given: object) -> str:
    """The hexadecimal digits of a root, in small letters.

    Raises:
        ValueError: it is no SHA-256 digest.
    """
    text = given.lower() if isinstance(given, str) else ""
    if len(text) == SHA256_DIGITS and set(text) <= set("0123456789abcdef"):
        return text
    cure = "; one of 32 digits is of XXH3-128, which stops no forger" if len(text) == _XXH3_DIGITS else ""
    raise ValueError(f"expected the {SHA256_DIGITS} hexadecimal digits of a SHA-256 digest, got {given!r}{cure}")


def require_root(command: str, given: object) -> str:
    """The same of the argument of a function. Raises ValueError that names both."""
    try:
        return root_digits(given)
    except ValueError as error:
        raise ValueError(f"{command}: argument 'expect_root': {error}") from None


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

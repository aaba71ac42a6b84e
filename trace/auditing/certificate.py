"""The certificate of an audit: what was drawn, what was found, and what follows from it, as JSON."""

import json
from dataclasses import dataclass, field
from typing import Any

from ...base.atomic_file import replacing
from ...base.errors import DomainError
from ...base.printed import Printed, aligned
from ...base.system import FilePath
from ..exit_codes import Exit
from ..json_value import Plain
from ..v2.check.report import Finding
from ..v2.verdict import Verdict
from .challenge import challenge, drawn
from .claims import AuditClaim, claims
from .units import Units

VERSION = 1
MOST_UNITS = 10_000
"""Units of a sample: where more are to be computed, `replay` proves them all."""

LONGEST_NONCE = 64
_LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True)
class AuditedTrace:
    """What tells a trace from every other: its last digest, and the end of its state chain; besides, what it is."""

    root: str
    state_chain: str
    digest: str
    mode: str
    steps: int
    state_every: int
    seed: int
    numerics: int

    @property
    def units(self) -> Units:
        """What is drawn of it."""
        return Units(self.steps, self.state_every)


@dataclass(slots=True, eq=False)
class Audit(Printed, Plain):
    """An audit, and its certificate: made by `dgrr.trace.audit`. True if every unit of the sample is as recorded.

    Args:
        trace: which trace was audited.
        nonce: the number that its maker did not know.
        size: units in the sample.
        model: the model that recomputed the steps, as you named it.
        versions: versions of dgrr, its numerics, numba and numpy.
        found: unit → the first finding on the way to it or in it; None: nothing.
        path: where the trace was.
        notes: what else there is to know; not in the certificate.

    The certificate of a complete audit depends on nothing but trace, nonce, size, model and versions.

    >>> trace = AuditedTrace("00", "00", "sha256", "digest", steps=100, state_every=1, seed=0, numerics=1)
    >>> begun = Audit(trace, b"nonce", 3, "train:run", {})
    >>> begun.sample, begun.complete, begun.verdict.value
    ([60, 98, 23], False, 'unproven')
    """

    trace: AuditedTrace
    nonce: bytes
    size: int
    model: str
    versions: dict[str, Any]
    found: dict[int, Finding | None] = field(default_factory=dict[int, Finding | None])
    path: str = ""
    notes: list[str] = field(default_factory=list[str])

    @property
    def challenge(self) -> bytes:
        """What the sample is drawn from."""
        return challenge(bytes.fromhex(self.trace.root), self.nonce)

    @property
    def sample(self) -> list[int]:
        """The units, in the order in which they are drawn."""
        return drawn(self.challenge, len(self.trace.units), self.size)

    @property
    def complete(self) -> bool:
        """Whether every unit of the sample was computed."""
        return len(self.found) == self.size

    @property
    def finding(self) -> Finding | None:
        """The first in the order of the steps."""
        return next((found for _, found in sorted(self.found.items()) if found is not None), None)

    @property
    def verdict(self) -> Verdict:
        """The word of the first finding; `ok`, or `unproven` while units are left to compute."""
        if self.finding is not None:
            return self.finding.verdict
        return Verdict.OK if self.complete else Verdict.UNPROVEN

    @property
    def exit_code(self) -> Exit:
        """The exit code that belongs to the verdict."""
        return self.verdict.exit_code

    @property
    def ok(self) -> bool:
        """Whether every unit of the sample is as recorded."""
        return self.verdict is Verdict.OK

    def __bool__(self) -> bool:
        return self.ok

    def _told(self) -> dict[str, object]:
        """The certificate, in plain types. It has no claims until the audit is complete: units are computed in the
        order of the run, so a part of the sample is not random."""
        units = self.trace.units
        return {
            "certificate": VERSION,
            "trace": self.trace,
            "model": self.model,
            "versions": self.versions,
            "nonce": self.nonce,
            "challenge": self.challenge,
            "units": len(units),
            "sample": self.sample,
            "results": [_result(units, unit, found) for unit, found in sorted(self.found.items())],
            "complete": self.complete,
            "verdict": self.verdict,
            "claims": claims(units, self.size) if self.complete else [],
        }

    def save(self, path: FilePath) -> None:
        """Write the certificate, replacing a file atomically. Raises OSError."""
        with replacing(path) as file:
            file.write(f"{json.dumps(self.to_dict(), indent=1, ensure_ascii=False)}\n".encode(errors="replace"))

    def __str__(self) -> str:
        units, done = self.trace.units, len(self.found)
        what = "steps" if units.length == 1 else f"units of {units.length} steps"
        lines = [f"{self.path}: {self.verdict.value}, {done} of {self.size} {what} computed, of {len(units)} there are"]
        lines.append(aligned([("root", self.trace.root), ("nonce", self.nonce.hex())], width=9))
        if self.finding is not None:
            lines.append(f"  {self.finding}")
        elif self.complete and done:
            lines.append("  a trace with so many forged steps would have passed with at most this probability:")
            lines += [_claim(units, *pair) for pair in zip(_SHARES, claims(units, self.size), strict=True)]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


_SHARES = ("one step", "0.1 %", "1 %", "10 %")


def _claim(units: Units, share: str, claim: AuditClaim) -> str:
    inside = "" if units.length == 1 else f", in {claim.units} of {len(units)} units"
    return f"    {share:<9} {claim.passes:.6f}  ({claim.steps} of {units.steps} steps{inside})"


def _result(units: Units, unit: int, found: Finding | None) -> dict[str, Any]:
    steps = units[unit]
    at = {"unit": unit, "first": steps.start, "last": steps[-1]}
    if found is None:
        return {**at, "verdict": Verdict.OK.value, "text": None, "step": None, "tensor": None}
    return {**at, **found.to_dict(), "text": found.text[:_LONGEST_TEXT]}


def require_sample(units: int, size: int) -> int:
    """The size of a sample, at most as many as there are. Raises DomainError."""
    if not 1 <= size <= MOST_UNITS:
        raise DomainError(
            f"audit: argument 'sample': expected 1 to {MOST_UNITS} units, got {size}; replay computes all"
        )
    return min(size, units)


def require_nonce(nonce: bytes) -> bytes:
    """A nonce of a length that a certificate holds. Raises DomainError."""
    if not 1 <= len(nonce) <= LONGEST_NONCE:
        raise DomainError(f"audit: argument 'nonce': expected 1 to {LONGEST_NONCE} bytes, got {len(nonce)}")
    return nonce

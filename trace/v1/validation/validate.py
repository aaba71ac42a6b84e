"""Validation: every rule of the format, over the whole file.

All failures are listed up to a cap. The first in file order decides the exit code: the header with the file's
size and CRC, then record after record; within a record its own bytes (CRC, padding) come before what they
say.
"""

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...exit_codes import Exit
from ...file_version import MAGIC, TraceFileError
from ..compiled import scan_block
from ..layout import HEADER_SIZE, MAX_STEP_COUNT, RECORD_SIZE, VERSION, HeaderV1, Record, header_crc32
from ..reader import BLOCK_RECORDS, TraceReaderV1
from .diagnosis import diagnose
from .rules import Broken, Failure, explain

LISTED_RECORDS = 20
_ANY_DISTANCE = 2**64 - 1


@dataclass(frozen=True)
class Scan:
    """What one pass over the records found."""

    file_crc32: int
    loss_total: float
    broken_count: int
    findings: list[tuple[int, int]]
    """(step, broken rules) of the first records that break any."""
    foreign_count: int
    """Records whose gradients or loss are not those of the header's seed."""
    first_foreign: int


@dataclass(frozen=True)
class Validation:
    """The answer of `validate`: the failures in file order, and what a valid trace is told about."""

    path: str
    header: HeaderV1
    failures: list[Failure]
    unlisted_records: int
    loss_total: float
    reexecution: str

    @property
    def exit(self) -> Exit:
        """The exit code that the first failure asks for."""
        return self.failures[0].exit if self.failures else Exit.OK

    def failure_text(self) -> str:
        """List the failures for people."""
        lines = [f"{self.path} is not valid:", *(f"  {failure.text}" for failure in self.failures)]
        if self.unlisted_records:
            lines.append(f"  ... and {self.unlisted_records} more records that break rules")
        return "\n".join(lines)


def _invalid(path: str, text: str) -> TraceFileError:
    return TraceFileError(f"{path} is not valid:\n  {text}", Exit.VALIDATION)


def _readable_header(trace: TraceReaderV1) -> HeaderV1:
    """Return the header's fields, or raise where they mean nothing: too short, no magic, another version."""
    if trace.size < HEADER_SIZE:
        raise _invalid(trace.path, f"truncated header: the file has {trace.size} bytes, a header has {HEADER_SIZE}")
    header = HeaderV1.unpack(trace.header)
    if header.magic != MAGIC:
        raise _invalid(trace.path, f"magic is {header.magic!r}, expected {MAGIC!r}: not a DGRR trace")
    if header.version != VERSION:
        raise _invalid(trace.path, f"unsupported version {header.version}, expected {VERSION}")
    return header


def _size_failure(trace: TraceReaderV1, header: HeaderV1) -> str | None:
    """Say how the size differs from what step_count asks for: truncated, torn or trailing bytes."""
    if header.step_count > MAX_STEP_COUNT:
        return f"step_count is {header.step_count}, more than a file can hold ({MAX_STEP_COUNT})"
    expected = HEADER_SIZE + RECORD_SIZE * header.step_count
    about = f"{trace.size} bytes, expected {expected} for {header.step_count} steps"
    if trace.size > expected:
        return f"trailing bytes: {trace.size - expected} after the last record ({about})"
    torn = (trace.size - HEADER_SIZE) % RECORD_SIZE
    if torn:
        return f"torn record: step {trace.whole_records} has {torn} of {RECORD_SIZE} bytes ({about})"
    if trace.size < expected:
        return f"truncated: the records of steps {trace.whole_records} and up are missing ({about})"
    return None


def _header_failures(raw: bytes, header: HeaderV1) -> Iterator[str]:
    computed = header_crc32(raw)
    if header.header_crc32 != computed:
        yield f"header_crc32 is {header.header_crc32:08x}, bytes 0..35 give {computed:08x}: corruption"
    if header.pad0:
        yield f"pad0 is {header.pad0:#06x}, expected zero"
    if any(header.reserved):
        yield f"reserved bytes 48..63 are {header.reserved.hex()}, expected zeros"
    if not (math.isfinite(header.learning_rate) and header.learning_rate > 0):
        yield f"learning_rate is {header.learning_rate!r}, expected finite and above 0"


def scan(trace: TraceReaderV1, header: HeaderV1, count: int, ulp_tol: int) -> Scan:
    """Check the first `count` records, block by block, and compute the CRC of the bytes read."""
    previous, losses = np.zeros(2, np.uint64), np.zeros(2, np.float64)
    tally, findings = np.zeros(3, np.int64), np.zeros((LISTED_RECORDS, 2), np.int64)
    crc = 0
    for index, records in enumerate(trace.blocks(count)):
        if index == 0:
            previous[:] = records[0, 1:3]
        crc = zlib.crc32(records.astype("<u8", copy=False).data, crc)
        first = index * BLOCK_RECORDS
        scan_block(records, first, header.seed, header.learning_rate, ulp_tol, previous, losses, tally, findings)
    broken, foreign, first_foreign = tally.tolist()
    listed = [(step, rules) for step, rules in findings[:broken].tolist()]
    return Scan(crc, float(losses[0]), broken, listed, foreign, first_foreign)


def _record_failures(trace: TraceReaderV1, header: HeaderV1, scanned: Scan, ulp_tol: int) -> list[Failure]:
    failures: list[Failure] = []
    for step, rules in scanned.findings:
        before = Record.unpack(trace.record(step - 1)) if step else None
        failures += explain(Broken(step, trace.record(step), before, header, ulp_tol), rules)
    return failures


def _reexecution(trace: TraceReaderV1, header: HeaderV1, scanned: Scan) -> str:
    if not scanned.foreign_count:
        return f"all steps follow from seed {header.seed}, bit for bit"
    step = scanned.first_foreign
    reason = diagnose(header.seed, step, Record.unpack(trace.record(step)))
    return f"{scanned.foreign_count} steps do not follow from seed {header.seed}; step {step}: {reason}"


def validate(trace: TraceReaderV1, ulp_tol: int = 0) -> Validation:
    """Check the whole file; `ulp_tol` is what the update law may be off by, in ULP.

    Where the size or a CRC of the header is wrong, what depends on it is not judged: the file CRC, or the
    update law.

    Raises:
        TraceFileError: the file cannot be read, or its header cannot be told to be one of version 1.
    """
    header = _readable_header(trace)
    texts = list(_header_failures(trace.header, header))
    size_failure = _size_failure(trace, header)
    scanned = scan(trace, header, min(header.step_count, trace.whole_records), _ANY_DISTANCE if texts else ulp_tol)
    if size_failure:
        texts.append(size_failure)
    elif header.file_crc32 != scanned.file_crc32:
        texts.append(
            f"file_crc32 is {header.file_crc32:08x}, bytes 64 and up give {scanned.file_crc32:08x}: corruption"
        )
    failures = [Failure(Exit.VALIDATION, text) for text in texts]
    failures += _record_failures(trace, header, scanned, ulp_tol)
    trace.check_size()
    return Validation(
        trace.path,
        header,
        failures,
        scanned.broken_count - len(scanned.findings),
        scanned.loss_total,
        "" if failures else _reexecution(trace, header, scanned),
    )


def require_valid(trace: TraceReaderV1, ulp_tol: int = 0) -> Validation:
    """Validate, and raise where there is a failure.

    Raises:
        TraceFileError: with the text of all failures and the exit code of the first.
    """
    validation = validate(trace, ulp_tol)
    if validation.failures:
        raise TraceFileError(validation.failure_text(), validation.exit)
    return validation

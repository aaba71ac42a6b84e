"""A golden file and the trace of the run at hand: compared, and written where that is asked."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias
from warnings import warn

from ...base.atomic_file import replacing
from ..comparing.compare import compare
from ..comparing.policy import Policy
from ..v2.verdict import Verdict
from .errors import GoldenDriftWarning, GoldenError, GoldenMismatchError
from .names import SIDECAR_SUFFIX
from .settings import Update
from .sidecar import agrees, sidecar

Outcome: TypeAlias = Literal["verified", "verified in part", "written", "updated"]


def sidecar_path(golden: Path) -> Path:
    """Where the text beside a golden file lies."""
    return golden.with_suffix(SIDECAR_SUFFIX)


def keep(golden: Path, present: Path, policy: Policy, update: Update, *, write_missing: bool) -> Outcome:
    """Hold the present trace against the golden file, or make it the golden file where ``update`` says so.

    A file with which the run agrees stays as it is, to the byte. It is verified in part if digests differ of
    which it has no values.

    Raises:
        GoldenError: the golden file is missing and is not to be written, is damaged, or cannot be written; the text
            beside it is another.
        GoldenMismatchError: they differ, and the golden file is not to be updated.
    """
    if not golden.exists():
        if update == "none" and not write_missing:
            raise GoldenError("it is missing, and CI is set, so that it is not written")
        return _write(golden, present, "written")
    try:
        uncompared = require_same(golden, present, policy)
    except GoldenError:
        if update != "all":
            raise
        return _write(golden, present, "updated")
    try:
        require_sidecar(golden)
    except GoldenError:
        if update == "none" or (update == "missing" and sidecar_path(golden).exists()):
            raise
        return _write_sidecar(golden)
    return "verified in part" if uncompared else "verified"


def delete(golden: Path) -> None:
    """Delete a golden file and the text beside it. Raises GoldenError."""
    try:
        for path in (golden, sidecar_path(golden)):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise GoldenError(f"it cannot be deleted: {error.filename}: {error.strerror}") from None


def require_same(golden: Path, present: Path, policy: Policy) -> int:
    """How many digests differ of which no values are recorded, so that they were not compared.

    Raises GoldenMismatchError if the run is not that of its golden file, or the file cannot be read.
    """
    comparison = compare(golden, present, policy=policy, proven=True)
    if comparison.verdict is Verdict.DRIFT:
        warn(GoldenDriftWarning(str(comparison)), stacklevel=2)
    elif not comparison.same:
        raise GoldenMismatchError(comparison)
    return comparison.uncompared


def require_sidecar(golden: Path) -> None:
    """Raise GoldenError if the text beside a golden file is missing or another one."""
    beside = sidecar_path(golden)
    try:
        text = beside.read_text()
    except FileNotFoundError:
        raise GoldenError(f"the text beside it, {beside.name}, is missing; commit both") from None
    except (OSError, UnicodeDecodeError) as error:
        raise GoldenError(f"the text beside it, {beside.name}, cannot be read: {error}") from None
    if not agrees(text, golden):
        raise GoldenError(f"the text beside it, {beside.name}, is that of another file; commit both together")


def _write(golden: Path, present: Path, outcome: Outcome) -> Outcome:
    """Make the present trace the golden one."""
    with _refusals():
        golden.parent.mkdir(parents=True, exist_ok=True)
        with replacing(golden) as file, present.open("rb") as source:
            shutil.copyfileobj(source, file)
    _write_sidecar(golden)
    return outcome


def _write_sidecar(golden: Path) -> Outcome:
    with _refusals(), replacing(sidecar_path(golden)) as file:
        file.write(sidecar(golden).encode())
    return "updated"


@contextmanager
def _refusals() -> Generator[None]:
    """Turn what the system refuses to write into a GoldenError."""
    try:
        yield
    except OSError as error:
        raise GoldenError(f"it cannot be written: {error.filename}: {error.strerror}") from None

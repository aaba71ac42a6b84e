"""Verification of a captured step: every check in turn, each from the same state, which is put back at the end."""

from collections.abc import Callable

from ....tape.errors import DomainError
from ..plans import Plans
from ..replayed_step import ReplayedStep
from .checks.coverage import check_lowering
from .checks.gradients import check_against_eager, check_differences
from .checks.graphs import check_graphs, check_links
from .checks.memory import check_allocation, check_arena, check_identity
from .checks.references import check_references
from .checks.replays import check_determinism, check_finite, check_recording, check_steps_at_once
from .checks.table import check_table
from .checks.trace import check_trace
from .checks.update import check_update
from .report import Check, CheckError, VerifyReport
from .subject import REFERENCE_WORK, Subject

CHECKS: dict[str, Callable[[Subject], str]] = {
    "graphs": check_graphs,
    "backward links": check_links,
    "lowering": check_lowering,
    "bound table": check_table,
    "arena": check_arena,
    "references": check_references,
    "executed trace": check_trace,
    "eager gradients": check_against_eager,
    "finite differences": check_differences,
    "finite replays": check_finite,
    "update rule": check_update,
    "determinism": check_determinism,
    "steps at once": check_steps_at_once,
    "recording": check_recording,
    "identity": check_identity,
    "allocation": check_allocation,
}
"""Every check by name, in order: those of a plan as data, of what it computes, of what replays do."""

OF_THIS_MACHINE = ("bound table", "identity", "allocation")
"""Those of what a step on a GPU has not: rows of the machine, and this machine's memory."""


def checks_of(subject: Subject) -> dict[str, Callable[[Subject], str]]:
    """The checks of a step where it runs."""
    return {name: check for name, check in CHECKS.items() if subject.is_here or name not in OF_THIS_MACHINE}


def verify_step(step: ReplayedStep, plans: Plans, replays: int, reference_work: int = REFERENCE_WORK) -> VerifyReport:
    """Check a step on the batch that is bound to ``plans``. Parameters, state and batch stay as they are, to the bit.

    Raises DomainError if ``replays`` is below 1, or ``reference_work`` below 0.
    """
    least = {"replays": (replays, 1), "reference_work": (reference_work, 0)}
    for name, (given, low) in least.items():
        if given != int(given) or given < low:
            raise DomainError(f"verify: {name}: expected a whole number of at least {low}, got {given!r}")
    subject = Subject(step, plans, int(replays), int(reference_work))
    return VerifyReport(tuple([_run(name, check, subject) for name, check in checks_of(subject).items()]))


def _run(name: str, check: Callable[[Subject], str], subject: Subject) -> Check:
    """One check. Whatever it raises is its finding: a broken plan may fail in any way."""
    try:
        return Check(name, held=True, detail=check(subject))
    except CheckError as error:
        return Check(name, held=False, detail=str(error))
    except Exception as error:
        return Check(name, held=False, detail=f"{type(error).__name__}: {error}")
    finally:
        subject.restore()

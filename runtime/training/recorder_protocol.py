"""What a trainer asks of a recorder, and how it finds one without knowing the trace format.

The runtime does not import the trace package. The package that writes traces registers its ``open_recorder``
under the entry point group ``dgrr.recorder``, and its ``resume_recorder`` under ``dgrr.resume``.
"""

from importlib.metadata import entry_points
from os import PathLike
from typing import Any, Literal, Protocol

from ...completed_step import CompletedStep
from ...tape import NUMERICS, DgrrError
from ..optim import Rule
from ..step.loss_call import Arrays

OPEN, RESUME = "dgrr.recorder", "dgrr.resume"
"""Entry point groups."""

Mode = Literal["digest", "grads"]
Path = str | PathLike[str]


class RecorderError(DgrrError, RuntimeError):
    """No package that can write a trace is installed."""


class Recorder(Protocol):
    """Writes one training run."""

    def step(self, done: CompletedStep) -> None:
        """Record one update."""

    def event(self, kind: str, text: str) -> None:
        """Write a note into the trace."""

    def commit(self) -> None:
        """Return once everything recorded so far is on the disk: before a checkpoint is saved."""

    def seal(self) -> None:
        """Finish the trace and give it its final name."""

    def close(self) -> None:
        """Stop without finishing: what was recorded stays readable."""


def open_recorder(
    path: Path,
    *,
    record: Mode,
    params: Arrays,
    state: Arrays,
    model_state: Arrays,
    rule: Rule,
    seed: int,
    overwrite: bool = False,
) -> Recorder:
    """A recorder for a run that starts from these arrays. Raises RecorderError if there is none.

    With ``overwrite`` an unfinished trace of the same name is begun anew, else the recorder refuses.
    """
    start: dict[str, Any] = {"params": params, "state": state, "model_state": model_state, "seed": seed}
    return _made(OPEN, path, record=record, overwrite=overwrite, **start, **_law(rule))


def resume_recorder(
    path: Path,
    *,
    steps: int,
    record: Mode,
    params: Arrays,
    state: Arrays,
    model_state: Arrays,
    rule: Rule,
    seed: int,
) -> Recorder:
    """A recorder that goes on with an unfinished trace: all arrays are those after ``steps`` steps.

    Steps that the trace holds beyond that are cut off. Raises RecorderError if there is no recorder; the recorder
    refuses a trace of another run, or one that does not hold as many steps, and leaves it as it was.
    """
    start: dict[str, Any] = {"params": params, "state": state, "model_state": model_state, "seed": seed}
    return _made(RESUME, path, steps=steps, record=record, **start, **_law(rule))


def _law(rule: Rule) -> dict[str, Any]:
    """The arithmetic of the run, as traces name it."""
    return {"rule": rule.rule, "hyperparameters": list(rule.names), "numerics": NUMERICS}


def _made(group: str, path: Path, **options: Any) -> Recorder:
    found = list(entry_points(group=group))
    if not found:
        raise RecorderError("trace: expected an installed package that records traces, got none; reinstall dgrr")
    make: Any = found[0].load()
    recorder: Recorder = make(path, **options)
    return recorder

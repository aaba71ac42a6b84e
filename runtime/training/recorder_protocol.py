"""What a trainer asks of a recorder, and how it finds one without knowing the trace format.

The runtime does not import the trace package. The package that writes traces registers, under the entry point group
``dgrr.recorder``, a module or object with the functions ``open_recorder`` and ``resume_recorder``.
"""

import os
from importlib.metadata import entry_points
from os import PathLike
from typing import Any, Literal, Protocol, runtime_checkable

from typing_extensions import TypeIs

from ...arrays import Arrays
from ...completed_step import CompletedStep
from ...tape import NUMERICS, DgrrError, DomainError
from ..step.update import Recipe

GROUP = "dgrr.recorder"
"""Entry point group."""

Mode = Literal["digest", "grads"]
Path = str | PathLike[str]


class RecorderError(DgrrError, RuntimeError):
    """No package that can write a trace is installed, or more than one."""


@runtime_checkable
class Recorder(Protocol):
    """Writes one training run."""

    def step(self, done: CompletedStep) -> None:
        """Record one update."""

    def commit(self) -> None:
        """Return once everything recorded so far is on the disk: before a checkpoint is saved."""

    def seal(self) -> None:
        """Finish the trace and give it its final name."""

    def close(self) -> None:
        """Stop without finishing: what was recorded stays readable."""


def is_path(trace: object) -> TypeIs[Path]:
    """Whether a trace is given by its path, not by its recorder."""
    return isinstance(trace, str | PathLike)


def check_trace(trace: object) -> None:
    """Raise DomainError for what is neither a path, a recorder nor None."""
    if trace is None or is_path(trace) or isinstance(trace, Recorder):
        return
    raise DomainError(
        "Trainer: argument 'trace': expected a path, or a recorder: an object with step, commit, seal and close; "
        f"got {trace!r}"
    )


def is_taken(trace: object) -> TypeIs[Path]:
    """Whether a trace is given by its path, and something stands there already."""
    return is_path(trace) and os.path.exists(trace)


def taken(where: str, trace: Path, checkpoint: Path | None = None) -> DomainError:
    """The refusal of a path where something stands, with the ways out: to go on, elsewhere, anew."""
    go_on = "" if checkpoint is None else f"load {str(checkpoint)!r} to go on, "
    return DomainError(
        f"{where}: {str(trace)!r} is there already, and a finished trace is never overwritten: {go_on}choose another "
        "path, or pass overwrite=True to replace it"
    )


def open_recorder(
    path: Path,
    *,
    record: Mode,
    params: Arrays,
    state: Arrays,
    model_state: Arrays,
    recipe: Recipe,
    seed: int,
    overwrite: bool = False,
) -> Recorder:
    """A recorder for a run that starts from these arrays. Raises RecorderError if not one package makes them.

    With ``overwrite`` a trace of the same name, finished or not, is begun anew, else the recorder refuses.
    """
    start: dict[str, Any] = {"params": params, "state": state, "model_state": model_state, "seed": seed}
    made: Recorder = _registered().open_recorder(path, record=record, overwrite=overwrite, **start, **_law(recipe))
    return made


def resume_recorder(
    path: Path,
    *,
    steps: int,
    record: Mode,
    params: Arrays,
    state: Arrays,
    model_state: Arrays,
    recipe: Recipe,
    seed: int,
) -> Recorder:
    """A recorder that goes on with an unfinished trace: all arrays are those after ``steps`` steps.

    Steps that the trace holds beyond that are cut off. Raises RecorderError as `open_recorder` does; the
    recorder refuses a trace of another run, or one that does not hold as many steps, and leaves it as it was.
    """
    start: dict[str, Any] = {"params": params, "state": state, "model_state": model_state, "seed": seed}
    made: Recorder = _registered().resume_recorder(path, steps=steps, record=record, **start, **_law(recipe))
    return made


def _law(recipe: Recipe) -> dict[str, Any]:
    """The arithmetic of the run, as traces name it."""
    rule = recipe.rule
    names = {"rule": rule.rule, "hyperparameters": list(rule.names), "numerics": NUMERICS}
    return {**names, "clip_value": recipe.clip_value}


def _registered() -> Any:
    """What the one entry point names. Raises RecorderError for none or several: which to take is not ours to guess."""
    found = entry_points(group=GROUP)
    if len(found) != 1:
        offers = ", ".join(sorted(f"{e.dist.name if e.dist else e.name} ({e.value})" for e in found)) or "none"
        cure = "uninstall all but one" if found else "install dgrr (pip install dgrr)"
        raise RecorderError(
            f"trace: expected one installed package that records traces, got {offers}; {cure}, or give the Trainer a "
            "recorder: trace=open_recorder(…)"
        )
    (entry,) = found
    return entry.load()

"""What a trainer asks of a recorder, and how it finds one without knowing the trace format.

The runtime does not import the trace package. The package that writes traces registers, under the entry point group
``dgrr.recorder``, a module or object with the functions ``open_recorder`` and ``resume_recorder``.
"""

import os
from collections.abc import Mapping
from importlib.metadata import entry_points
from os import PathLike
from typing import Protocol, cast, get_args, runtime_checkable

from typing_extensions import TypeIs

from ...base.runs.completed_step import CompletedStep
from ...base.runs.keep import Keep, Mode
from ...base.runs.run import Run
from ...base.system import FilePath
from ...tape import DgrrError, DomainError

GROUP = "dgrr.recorder"
"""Entry point group."""


class RecorderError(DgrrError, RuntimeError):
    """No package that can write a trace is installed, or more than one."""


@runtime_checkable
class Recorder(Protocol):
    """Writes one training run."""

    def wants_tape(self, step: int) -> bool:
        """Whether a step must come with its tape: every value and every gradient."""
        ...

    def step(self, done: CompletedStep) -> None:
        """Record one update."""

    def commit(self) -> None:
        """Return once everything recorded so far is on the disk: before a checkpoint is saved."""

    def seal(self) -> None:
        """Finish the trace and give it its final name."""

    def close(self) -> None:
        """Stop without finishing: what was recorded stays readable."""


@runtime_checkable
class ValidationRecorder(Protocol):
    """A recorder that records validations, too."""

    def validation(self, figures: Mapping[str, float]) -> None:
        """Record what was measured on other data behind the last step, by name, such as ``validation_loss``."""


@runtime_checkable
class RecorderFactory(Protocol):
    """Makes the recorder of a run just before its first step."""

    def open_recorder(self, run: Run) -> Recorder:
        """A recorder that begins with the run."""
        ...


Traced = Keep | Recorder | RecorderFactory
"""What says where a run is recorded."""


def traced(trace: FilePath | Traced | None, record: Mode | None) -> Traced | None:
    """Where a trainer records its run, of a bare path as it is kept. Raises DomainError for what says nothing of it."""
    if record not in (None, *get_args(Mode)):
        raise DomainError(f"Trainer: argument 'record': expected 'digest', 'grads', 'full' or 'bare', got {record!r}")
    if isinstance(trace, str | PathLike):
        return Keep(trace, record=record or "grads")
    if trace is None:
        return None
    if not isinstance(cast(object, trace), Traced):
        raise DomainError(
            "Trainer: argument 'trace': expected a path; a Keep; a recorder: an object with wants_tape, step, commit, "
            f"seal and close; or an object with open_recorder, which makes one; got {trace!r}"
        )
    if record is not None:
        cure = f"say it in Keep(…, record={record!r})" if isinstance(trace, Keep) else "leave it out"
        raise DomainError(
            f"Trainer: argument 'record': expected None with a 'trace' that says what it keeps, got {record!r}; {cure}"
        )
    return trace


def is_taken(trace: object) -> TypeIs[Keep]:
    """Whether a trace has a path at which something stands already."""
    return isinstance(trace, Keep) and os.path.exists(trace.path)


def taken(where: str, trace: Keep, checkpoint: FilePath | None = None) -> DomainError:
    """The error for a path that exists, with the ways out: continue, choose another path, overwrite."""
    go_on = "" if checkpoint is None else f"load {str(checkpoint)!r} to go on, "
    return DomainError(
        f"{where}: {str(trace.path)!r} already exists, and a finished trace is never overwritten: {go_on}choose "
        f"another path, or pass trace=Keep({str(trace.path)!r}, overwrite=True) to replace it"
    )


def open_recorder(trace: Keep | RecorderFactory, run: Run) -> Recorder:
    """A recorder for a run that starts here. Raises RecorderError if not one package makes them."""
    if isinstance(trace, RecorderFactory):
        return trace.open_recorder(run)
    return _registered().open_recorder(trace, run)


def resume_recorder(trace: Keep, run: Run, *, steps: int) -> Recorder:
    """A recorder that goes on with an unfinished trace after ``steps`` steps.

    Steps that the trace holds beyond that are cut off. Raises RecorderError as `open_recorder` does; the
    recorder refuses a trace of another run, or one that does not hold as many steps, and leaves it as it was.
    """
    return _registered().resume_recorder(trace, run, steps=steps)


class _Registered(Protocol):
    """What the entry point names."""

    def open_recorder(self, keep: Keep, run: Run) -> Recorder: ...

    def resume_recorder(self, keep: Keep, run: Run, *, steps: int) -> Recorder: ...


def _registered() -> _Registered:
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
    return cast(_Registered, entry.load())

"""What a trainer asks of a recorder, and how it finds one without knowing the trace format.

The runtime does not import the trace package. The package that writes traces registers, under the entry point group
``dgrr.recorder``, a module or object with the functions ``open_recorder`` and ``resume_recorder``.
"""

import os
from collections.abc import Collection, Mapping
from datetime import timedelta
from importlib.metadata import entry_points
from numbers import Real
from os import PathLike
from typing import Any, Literal, NamedTuple, Protocol, get_args, runtime_checkable

from typing_extensions import TypeIs

from ...base.arrays import Arrays
from ...base.completed_step import CompletedStep
from ...tape import NUMERICS, DgrrError, DomainError
from ..step.recipe import Recipe

GROUP = "dgrr.recorder"
"""Entry point group."""

Mode = Literal["digest", "grads"]
Digest = Literal["xxh3-128", "sha256"]
KeyframeEvery = int | timedelta
RecordOps = Literal["first", "every"] | Collection[int] | int | None
Path = str | PathLike[str]


class RecorderError(DgrrError, RuntimeError):
    """No package that can write a trace is installed, or more than one."""


@runtime_checkable
class Recorder(Protocol):
    """Writes one training run."""

    def wants_tape(self, step: int) -> bool:
        """Whether a step is to be handed over with its tape: every value of it and every gradient."""
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
class RecorderFactory(Protocol):
    """Makes the recorder of a run when its first step is about to be done."""

    def open_recorder(self, **run: Any) -> Recorder:
        """A recorder that begins with the run: its keywords are those of `dgrr.trace.open_recorder` but the path."""
        ...


def is_path(trace: object) -> TypeIs[Path]:
    """Whether a trace is given by its path, not by its recorder."""
    return isinstance(trace, str | PathLike)


def check_trace(trace: object) -> None:
    """Raise DomainError for what is neither a path, a recorder, a maker of one nor None."""
    if trace is None or is_path(trace) or isinstance(trace, Recorder | RecorderFactory):
        return
    raise DomainError(
        "Trainer: argument 'trace': expected a path; a recorder: an object with wants_tape, step, commit, seal and "
        f"close; or an object with open_recorder, which makes one; got {trace!r}"
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


class TraceOptions(NamedTuple):
    """What a trace keeps of a run.

    Args:
        record, record_ops: of each step.
        keyframe_every, keyframe_budget: how often the whole state; None leaves it to the recorder.
        digest: by what it is digested.
    """

    record: Mode = "grads"
    record_ops: RecordOps = None
    keyframe_every: KeyframeEvery | None = None
    keyframe_budget: int | None = None
    digest: Digest = "xxh3-128"

    def check(self) -> None:
        """Raise DomainError for what is none of these."""
        if self.record not in get_args(Mode):
            raise DomainError(f"Trainer: argument 'record': expected 'digest' or 'grads', got {self.record!r}")
        if self.digest not in get_args(Digest):
            raise DomainError(f"Trainer: argument 'digest': expected 'xxh3-128' or 'sha256', got {self.digest!r}")
        if not (self.keyframe_every is None or _is_distance(self.keyframe_every)):
            expected = "expected a whole number of at least 1, or a timedelta above 0"
            raise DomainError(f"Trainer: argument 'keyframe_every': {expected}, got {self.keyframe_every!r}")
        if self.keyframe_budget is not None and not _is_whole(self.keyframe_budget, 0):
            expected = "expected a whole number of bytes of at least 0"
            raise DomainError(f"Trainer: argument 'keyframe_budget': {expected}, got {self.keyframe_budget!r}")

    @property
    def keywords(self) -> dict[str, Any]:
        """As recorders take them where they begin a trace and where they go on with one."""
        kept: dict[str, Any] = {"record": self.record, "record_ops": self.record_ops}
        chosen = {"keyframe_every": self.keyframe_every, "keyframe_budget": self.keyframe_budget}
        return kept | {name: value for name, value in chosen.items() if value is not None}

    @property
    def beginning(self) -> dict[str, Any]:
        """What they take besides where they begin one."""
        return {} if self.digest == "xxh3-128" else {"digest": self.digest}


def _is_distance(every: object) -> bool:
    return every > timedelta(0) if isinstance(every, timedelta) else _is_whole(every, 1)


def _is_whole(value: Any, least: int) -> bool:
    """Whether it is a whole number of at least so much, whatever its type."""
    return isinstance(value, Real) and float(value).is_integer() and float(value) >= least


class RunStart(NamedTuple):
    """What a recorder is told before the first step, or where it goes on.

    Args:
        kept: what the trace keeps.
        seed: of the run.
        recipe: how a step updates.
        arrays: ``params``, ``state`` and ``model_state``, each an array by name, as they are now.
    """

    kept: TraceOptions
    seed: int
    recipe: Recipe
    arrays: Mapping[str, Arrays]

    @property
    def keywords(self) -> dict[str, Any]:
        """As `dgrr.trace.open_recorder` takes it, the arithmetic as traces name it."""
        groups = self.recipe.groups(self.arrays["params"]).recorded()
        one = groups[0] if len(groups) == 1 else None
        law = {"rule": one.rule if one else groups, "hyperparameters": list(one.hyperparameters) if one else []}
        kept = self.kept.keywords
        if self.recipe.on_nonfinite != "stop":
            kept["on_nonfinite"] = self.recipe.on_nonfinite
        known = {"seed": self.seed, "numerics": NUMERICS, "clip_value": self.recipe.clip_value}
        return {**kept, **self.arrays, **law, **known}


def open_recorder(trace: Path | RecorderFactory, run: RunStart, *, overwrite: bool = False) -> Recorder:
    """A recorder for a run that starts here. Raises RecorderError if not one package makes them.

    With ``overwrite`` a trace of the same name, finished or not, is begun anew, else the recorder refuses.
    """
    if isinstance(trace, RecorderFactory):
        return trace.open_recorder(overwrite=overwrite, **run.keywords, **run.kept.beginning)
    made: Recorder = _registered().open_recorder(trace, overwrite=overwrite, **run.keywords, **run.kept.beginning)
    return made


def resume_recorder(path: Path, run: RunStart, *, steps: int) -> Recorder:
    """A recorder that goes on with an unfinished trace after ``steps`` steps.

    Steps that the trace holds beyond that are cut off. Raises RecorderError as `open_recorder` does; the
    recorder refuses a trace of another run, or one that does not hold as many steps, and leaves it as it was.
    """
    made: Recorder = _registered().resume_recorder(path, steps=steps, **run.keywords)
    return made


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

"""What a trace tells of its run beside the steps: notes of the user, hosts and times, and validations."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ..base.runs.completed_step import VALIDATION
from .v2.errors import InvalidTraceError
from .v2.format.documents.notes import NotesRecord
from .v2.read.reader import TraceReader

_LOSS = f"{VALIDATION}loss"


@dataclass(frozen=True, slots=True)
class ToldOfRun:
    """It all, as far as it can be read; nothing of it is proven.

    `noted` are those of the beginning and of each resumption, behind so many steps; `validations` the figures by the
    step behind which they stand.
    """

    noted: tuple[tuple[int, NotesRecord], ...] = ()
    validations: Mapping[int, Mapping[str, float]] = field(default_factory=dict[int, Mapping[str, float]])

    @classmethod
    def of(cls, trace: TraceReader) -> "ToldOfRun":
        """What an open trace tells, up to where it is damaged."""
        noted, validations = tuple[tuple[int, NotesRecord], ...](), dict[int, dict[str, float]]()
        with suppress(InvalidTraceError):
            noted = tuple(trace.noted())
        with suppress(InvalidTraceError):
            validations = trace.validations()
        return cls(noted, validations)

    @property
    def notes(self) -> dict[str, Any]:
        """Of the user, as they were given last."""
        return self.noted[-1][1].notes if self.noted else {}

    @property
    def begun(self) -> str | None:
        """When the run began, in UTC."""
        return self.noted[0][1].time if self.noted and self.noted[0][0] == 0 else None

    @property
    def best(self) -> int | None:
        """The step behind which the validation loss is least."""
        losses = {step: figures[_LOSS] for step, figures in self.validations.items() if _LOSS in figures}
        finite = {step: loss for step, loss in losses.items() if abs(loss) < float("inf")}
        return min(finite, key=finite.__getitem__) if finite else None

    @property
    def best_loss(self) -> float | None:
        """The least validation loss."""
        return None if self.best is None else self.validations[self.best][_LOSS]

    def facts(self) -> dict[str, object]:
        """What people are to see of it, by name."""
        found: dict[str, object] = {}
        if self.best is not None:
            found["best validation"] = f"loss {self.best_loss:.6g} after step {self.best}"
        if self.validations:
            step, figures = list(self.validations.items())[-1]
            named = ", ".join(f"{name.removeprefix(VALIDATION)} {value:.6g}" for name, value in figures.items())
            found["last validation"] = f"{named} after step {step}"
        if self.notes:
            found["notes"] = "\n".join(f"{as_text(name)}: {as_text(value)}" for name, value in self.notes.items())
        for steps, record in self.noted:
            found[f"resumed at {steps}" if steps else "begun"] = f"{readable(record.time)} on {machine(record)}"
        return found


def as_text(value: object) -> str:
    """A value for people: a text as it is, unless a terminal would obey it; what has parts, and the rest, as JSON.

    >>> as_text("digits"), as_text({"width": [64, 10]}), as_text(None), as_text("a\\x1b[2J")
    ('digits', '{"width": [64, 10]}', 'null', '"a\\\\u001b[2J"')
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def in_table(value: object) -> str | float | None:
    """The same in a cell: numbers as they are, so that they are sorted and shown as such."""
    return value if isinstance(value, int | float | None) and not isinstance(value, bool) else as_text(value)


def readable(time: str) -> str:
    """A time for people.

    >>> readable("2026-11-26T05:38:47Z")
    '2026-11-26 05:38:47 UTC'
    """
    return time.replace("T", " ").replace("Z", " UTC")


def machine(record: NotesRecord) -> str:
    """A host in a line."""
    host = record.host
    words = [as_text(host[key]) for key in ("name", "cpu", "system") if key in host]
    versions = [f"{key} {as_text(host[key])}" for key in ("dgrr", "numpy", "numba", "python") if key in host]
    return "; ".join(", ".join(part) for part in (words, versions) if part)

"""Options of a run and of what is kept of it, given together."""

from dataclasses import fields
from os import PathLike
from typing import Any

from dgrr.runtime import Keep
from dgrr.trace import RuleGroup, Run, TraceRecorder, open_recorder, resume_recorder

NAMES = {field.name for field in fields(Keep)} - {"path"}


def kept(path: str | PathLike[str], options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a trainer that records to a path, those of its `Keep` among the options put into it."""
    keep = Keep(path, **{name: options[name] for name in options if name in NAMES})
    return {"trace": keep, **{name: options[name] for name in options if name not in NAMES}}


def parts(path: str | PathLike[str], *, rule: str, hyperparameters: Any = (), **options: Any) -> tuple[Keep, Run]:
    """What is kept, and a run with one rule, whose fields are given together."""
    keep = Keep(path, **{name: options.pop(name) for name in NAMES & options.keys()})
    return keep, Run(rules=[RuleGroup(rule, tuple(hyperparameters))], **options)


def recorder_of(path: str | PathLike[str], **options: Any) -> TraceRecorder:
    """The recorder of a run that begins."""
    return open_recorder(*parts(path, **options))


def resumed(path: str | PathLike[str], *, steps: int, **options: Any) -> TraceRecorder:
    """The recorder of a run that goes on behind so many steps."""
    return resume_recorder(*parts(path, **options), steps=steps)

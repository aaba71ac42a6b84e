"""Options of a trainer and of what is kept of its run, given together."""

from dataclasses import fields
from os import PathLike
from typing import Any

from dgrr.runtime import Keep

NAMES = {field.name for field in fields(Keep)} - {"path"}


def kept(path: str | PathLike[str], options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a trainer that records to a path, those of its `Keep` among the options put into it."""
    keep = Keep(path, **{name: options[name] for name in options if name in NAMES})
    return {"trace": keep, **{name: options[name] for name in options if name not in NAMES}}

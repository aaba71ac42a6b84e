"""Where golden files lie, and what becomes of one that differs or is missing."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ...base.errors import DomainError

Update: TypeAlias = Literal["none", "missing", "all"]
"""Which golden files are written: all that differ, those that are missing, or none."""

UPDATES: tuple[Update, ...] = ("none", "missing", "all")

FOLDER = "tests/golden"
"""Where golden files lie in a project that does not say."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Of a run of tests.

    Args:
        folder: where the golden files lie, or, where nothing names that, those of the project at hand.
        named: whether an option or a setting names the folder.
        project: the folder of the project's settings, if there are any.
        update: which of them are written.
        in_ci: whether a missing file is a failure, since nobody would commit what is written.
    """

    folder: Path
    named: Literal["option", "setting"] | None
    project: Path | None
    update: Update
    in_ci: bool


def in_ci(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment variable CI is set, as services for continuous integration do.

    >>> in_ci({"CI": "true"}), in_ci({"CI": "0"}), in_ci({})
    (True, False, False)
    """
    return environment.get("CI", "").lower() not in ("", "0", "false", "no")


def update_of(text: str) -> Update:
    """What a project's settings name. Raises DomainError that says what there is.

    >>> update_of("missing")
    'missing'
    """
    if text not in UPDATES:
        raise DomainError(f"dgrr_update: expected one of {', '.join(UPDATES)}, got {text!r}")
    return text

"""Runs that are audited."""

from pathlib import Path
from typing import Any

import pytest

from .runs import KEYFRAMES, STEPS, Made, record


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audits")


@pytest.fixture(scope="session")
def run(folder: Path) -> Made:
    """A run by its options, recorded once."""

    def made(**options: Any) -> Path:
        path = folder / "-".join(["run", *(f"{key}{value}" for key, value in options.items())])
        given = {"record": "digest", "state_every": 1, "keyframe_every": KEYFRAMES, "steps": STEPS, **options}
        return path if path.exists() else record(path, **given)

    return made

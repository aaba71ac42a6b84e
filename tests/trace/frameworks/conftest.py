"""What tests of other frameworks share."""

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a trace that is not there yet."""
    return tmp_path / "run.dgrr"

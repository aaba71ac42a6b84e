"""What the tests of the engine share."""

from typing import Any

import pytest

from dgrr.tape import Tape


@pytest.fixture
def tape() -> Tape[Any]:
    """An empty tape of any element type."""
    return Tape()

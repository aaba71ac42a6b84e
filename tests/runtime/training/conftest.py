"""What tests of launches share."""

from typing import Any

import pytest

from dgrr.runtime.captured.plans import Executable
from dgrr.runtime.training.fitting import pace


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many steps each launch had; their number does not depend on how fast the machine is."""
    had, several = list[int](), Executable.several

    def noted(self: Executable, *given: Any) -> Any:
        done, fault = several(self, *given)
        had.append(len(done.losses))
        return done, fault

    monkeypatch.setattr(Executable, "several", noted)
    monkeypatch.setattr(pace, "SECONDS", 1e9)
    return had

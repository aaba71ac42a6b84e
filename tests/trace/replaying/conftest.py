"""Short runs are done again as long ones are: prepared."""

import pytest

from dgrr.trace.replaying import recomputed


@pytest.fixture(autouse=True)
def prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every step be worth it."""
    monkeypatch.setattr(recomputed, "WORTH", 1)

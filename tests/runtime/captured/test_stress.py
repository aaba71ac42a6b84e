"""Many replays leave memory and addresses as they were, and make the state that eager steps make."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def stress(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program of the long version."""
    monkeypatch.syspath_prepend(str(BENCH))
    return import_module("stress")


@pytest.mark.long
def test_a_thousand_replays(stress: Any) -> None:
    found = stress.stress(1000, {1, 10, 100, 500, 1000})
    assert found.grown < stress.LIMIT
    assert found.moved == []
    assert found.differing == []


@pytest.mark.long
def test_the_stress_finds_what_it_looks_for(stress: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = list[Any]()
    called = stress.CapturedStep.__call__

    def leaking(self: Any, batch: Any) -> Any:
        kept.append(np.empty(8))
        if len(kept) == 70:
            self.params["0.bias"][0] += 1
            self.state["step"] = self.state["step"].copy()
        return called(self, batch)

    monkeypatch.setattr(stress.CapturedStep, "__call__", leaking)
    found = stress.stress(100, {10, 100})
    assert found.grown > 100 * 8 * 8
    assert found.moved == ["step"]
    assert found.differing == [100]

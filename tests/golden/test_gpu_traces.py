"""Traces that an NVIDIA H200 recorded, proven by the CPU at hand: every step is computed again, to the bit."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dgrr.runtime.data import digits
from dgrr.tape import nn, ops
from dgrr.trace import replay

FOLDER = Path(__file__).parent
MLP = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10))


@pytest.fixture(autouse=True)
def _recorded_under_version_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what version 3 changed these networks have nothing, so each of their bits must be met by it too."""
    monkeypatch.setattr("dgrr.trace.replaying.recomputed.NUMERICS", 2)


def mlp_loss(p: Any, batch: Any) -> Any:
    images, labels = batch
    return ops.cross_entropy(MLP(p, images), labels)


def test_of_a_perceptron() -> None:
    train, _ = digits()
    verdict = replay(FOLDER / "h200_mlp.dgrr", loss_fn=mlp_loss, batches=train.batches(32, seed=0))
    assert verdict, verdict


@pytest.mark.parametrize("name", ["cnn", "transformer"])
def test_of_the_networks(name: str, networks: ModuleType) -> None:
    network = networks.NETWORKS[name]
    verdict = replay(FOLDER / f"h200_{name}.dgrr", loss_fn=network.loss_fn, batches=network.every())
    assert verdict, verdict

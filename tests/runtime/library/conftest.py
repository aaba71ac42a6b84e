"""Libraries that several tests look at."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, CapturedStep, Library, capture, export_library
from dgrr.tape import nn, ops

from .native import host

NET = nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.3), nn.ReLU(), nn.Linear(5, 3))


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    """Cross-entropy of a net that draws, and a state that remembers."""
    state = {"mean": ctx.state["mean"] * 0.9 + ops.reduce_mean(batch[0], axis=0)}
    return ops.cross_entropy(NET(p, batch[0] - ctx.state["mean"], ctx), batch[1]), state


def batches(n: int = 4) -> list[Any]:
    """Some batches."""
    rng = np.random.default_rng(3)
    return [(rng.standard_normal((7, 6)).astype(np.float32), rng.integers(0, 3, 7)) for _ in range(n)]


def step() -> CapturedStep:
    """The training step of the net, from its start."""
    state = {"mean": np.zeros(6, np.float32)}
    return capture(loss_fn, NET.init(seed=1), Adam(0.01), batches()[0], model_state=state, seed=5)


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The step as a library of this machine."""
    made = export_library(step(), tmp_path_factory.mktemp("library"), target=host(), name="net")
    return made[host()]

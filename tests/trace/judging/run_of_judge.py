"""A small run that draws, remembers and has batches of one shape: its model, its batches, its trace."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Keep, Trainer
from dgrr.tape import nn, ops

NET = nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.3), nn.ReLU(), nn.Linear(5, 3))


def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
    """Cross-entropy of a net that draws, and a state that remembers."""
    state = {"mean": ctx.state["mean"] * 0.9 + ops.reduce_mean(batch[0], axis=0)}
    return ops.cross_entropy(NET(p, batch[0] - ctx.state["mean"], ctx), batch[1]), state


def batches() -> list[Any]:
    """Some batches."""
    rng = np.random.default_rng(3)
    return [(rng.standard_normal((7, 6)).astype(np.float32), rng.integers(0, 3, 7)) for _ in range(3)]


def run() -> tuple[Any, Any]:
    """What ``--model`` asks for."""
    return loss_fn, batches()


def train(path: Path, *, loss: Any = loss_fn, keep: Mapping[str, Any] | None = None, **options: Any) -> None:
    """Record seven steps."""
    state = {"mean": np.zeros(6, np.float32)}
    trace = Keep(path, record="grads", **keep or {})
    trainer = Trainer(loss, NET.init(seed=1), Adam(0.01), model_state=state, trace=trace, seed=5, **options)
    trainer.fit(batches(), steps=7)

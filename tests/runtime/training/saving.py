"""A small run that saves checkpoints and goes on from them."""

from pathlib import Path
from typing import Any

import numpy as np

from dgrr.runtime import Adam, Callback, Dataset, Trainer
from dgrr.runtime.optim import Cosine
from dgrr.tape import nn, ops

MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
RNG = np.random.default_rng(6)
DATA = Dataset(RNG.standard_normal((20, 3)).astype(np.float32), RNG.integers(0, 2, 20))
RULE = Adam(Cosine(0.05, steps=12))
EPOCHS = 3


def loss_fn(p: Any, batch: Any) -> Any:
    inputs, labels = batch
    return ops.cross_entropy(MODEL(p, inputs), labels)


def new_trainer(seed: int = 0, rule: Any = RULE, **options: Any) -> Trainer:
    return Trainer(loss_fn, MODEL.init(seed), rule, **options)


class SaveAt(Callback):
    """Saves after a number of steps, then ends the run in bad order."""

    def __init__(self, steps: int, path: Path) -> None:
        self.steps, self.path = steps, path

    def on_step(self, trainer: Trainer, step: int, loss: float) -> bool | None:
        if step + 1 == self.steps:
            trainer.save(self.path)
            raise InterruptedError
        return None

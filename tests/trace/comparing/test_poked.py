"""A parameter that was changed by hand between two steps is not said to be computed from equal state."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Callback, Trainer
from dgrr.tape import nn
from dgrr.trace import compare

from ...keeping import kept

MODEL = nn.Linear(3, 2)
BATCHES = list(np.random.default_rng(0).standard_normal((5, 4, 3)).astype(np.float32))


class Poke(Callback):
    def on_step(self, trainer: Trainer, step: int, loss: float) -> None:
        if step == 2:
            trainer.params["weight"][0, 0] += np.float32(0.5)


def train(path: Path, **options: Any) -> Path:
    Trainer(lambda p, x: MODEL(p, x).abs().mean(), MODEL.init(0), SGD(0.1), **kept(path, options)).fit(BATCHES)
    return path


@pytest.mark.parametrize(
    ("ops", "text"),
    [
        (
            "every",
            "'weight' was changed after step 2, outside of its update; from there",
        ),
        (None, "from equal data and the equal state of step 2 it computes another loss"),
    ],
)
def test_a_poked_parameter(tmp_path: Path, ops: Any, text: str) -> None:
    a, b = train(tmp_path / "a", ops=ops), train(tmp_path / "b", ops=ops, callbacks=[Poke()])
    found = compare(a, b)
    assert found.sentence is not None
    assert found.sentence.startswith(f"step 3 is the first that differs: {text}")

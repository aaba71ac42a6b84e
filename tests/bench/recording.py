"""What recording a step costs: ``python tests/bench/recording.py [--model digits|tiny]``.

Runs without a trace, with digests and with gradients alternate; the table shows medians of the time of a step.
"""

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dgrr.runtime import Adam, Trainer
from dgrr.tape import AnyVar, nn, ops

ROUNDS = 7
MODELS = {
    "digits": (nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)), 460),
    "tiny": (nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 10)), 2000),
}


def seconds_a_step(model: nn.Sequential, steps: int, record: Any, folder: Path) -> float:
    """The time of one step of a whole run."""
    rng = np.random.default_rng(0)
    features = model.parameters()["0.weight"].shape[1]
    batch = (rng.standard_normal((64, features)).astype(np.float32), rng.integers(0, 10, 64))

    def loss_fn(p: Any, batch: Any) -> AnyVar:
        return ops.cross_entropy(model(p, batch[0]), batch[1])

    trace = folder / "run.dgrr" if record else None
    trainer = Trainer(loss_fn, model.init(seed=0), Adam(1e-3), trace=trace, record=record or "grads")
    return trainer.fit([batch] * steps, progress=False).seconds / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=list(MODELS), default="digits")
    model, steps = MODELS[parser.parse_args().model]
    modes = (None, "digest", "grads")
    with tempfile.TemporaryDirectory() as folder:
        seconds_a_step(model, 20, "grads", Path(folder))
        rounds = [{m: seconds_a_step(model, steps, m, Path(folder)) for m in modes} for _ in range(ROUNDS)]
    times = {m: median(r[m] for r in rounds) * 1e6 for m in modes}
    table = Table("recorded", "step [us]", "recording [us]", "share of the step")
    for mode, time in times.items():
        cost = time - times[None]
        table.add_row(mode or "nothing", f"{time:.1f}", f"{cost:.1f}", f"{cost / times[None]:.1%}")
    Console().print(table)


if __name__ == "__main__":
    main()

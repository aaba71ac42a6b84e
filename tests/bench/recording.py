"""What recording and replaying a step cost: ``python tests/bench/recording.py [--model digits|tiny]``.

Runs without a trace, with digests and with gradients alternate; the tables show medians of the time of a step, and of
what is done with a trace of many steps: validation, replay by recorded gradients, replay with the model.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dgrr.runtime import Adam, Keep, Trainer
from dgrr.tape import AnyVar, nn, ops
from dgrr.trace import replay, validate

ROUNDS = 7
MODELS = {
    "digits": (nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)), 460),
    "tiny": (nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 10)), 2000),
}


def _run(model: nn.Sequential) -> tuple[Any, Callable[..., AnyVar]]:
    """A batch and a loss function."""
    rng = np.random.default_rng(0)
    features = model.parameters()["0.weight"].shape[1]
    batch = (rng.standard_normal((64, features)).astype(np.float32), rng.integers(0, 10, 64))

    def loss_fn(p: Any, batch: Any) -> AnyVar:
        return ops.cross_entropy(model(p, batch[0]), batch[1])

    return batch, loss_fn


def seconds_a_step(model: nn.Sequential, steps: int, record: Any, folder: Path) -> float:
    """The time of one step of a whole run."""
    batch, loss_fn = _run(model)
    trace = folder / "run.dgrr" if record else None
    trainer = Trainer(loss_fn, model.init(seed=0), Adam(1e-3), trace=trace, record=record or "grads")
    return trainer.fit([batch] * steps, progress=False).seconds / steps


def reading(model: nn.Sequential, steps: int, folder: Path) -> Table:
    """What it takes to read traces of so many steps, a step, and their bytes a second."""
    table = Table("trace", "what", "step [us]", "GB/s")
    for record in ("digest", "grads"):
        batch, loss_fn = _run(model)
        batches, path = [batch] * steps, folder / f"{record}.dgrr"
        trace = Keep(path, record=record)
        Trainer(loss_fn, model.init(seed=0), Adam(1e-3), trace=trace).fit(batches, progress=False)
        read: dict[str, Callable[[], Any]] = {
            "validate": lambda path=path: validate(path),
            "replay, gradients": lambda path=path: replay(path),
            "replay, model": lambda path=path, loss_fn=loss_fn, batches=batches: replay(
                path, loss_fn=loss_fn, batches=batches
            ),
        }
        for what, run in read.items():
            if record == "digest" and what == "replay, gradients":
                continue
            taken = median(_seconds(run) for _ in range(ROUNDS))
            rate = path.stat().st_size / taken / 1e9
            table.add_row(record, what, f"{taken / steps * 1e6:.1f}", f"{rate:.2f}")
    return table


def _seconds(run: Callable[[], Any]) -> float:
    began = perf_counter()
    assert run(), "a trace is not in order"
    return perf_counter() - began


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
    with tempfile.TemporaryDirectory() as folder:
        Console().print(reading(model, steps, Path(folder)))


if __name__ == "__main__":
    main()

"""What an audit costs against a full replay, and how many of a thousand forgeries pass it.

    python tests/bench/audit.py [--steps 10000] [--keyframes 100] [--sample 32] [--jobs 2]

A run of a small network is recorded with digests and with gradients, replayed, and audited with a nonce drawn anew.
Forgeries are simulated: the sample is drawn as an audit draws it, and what is found is asked of an oracle, which the
tests hold to audits of real forged traces.
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dgrr.runtime import Adam, Dataset, Keep, Trainer
from dgrr.tape import nn, ops
from dgrr.tests.trace.auditing.forgeries import passed
from dgrr.trace import audit, replay
from dgrr.trace.auditing.claims import claims
from dgrr.trace.auditing.units import Units

FORGERIES = 1000
MODEL = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def loss_fn(p: Any, batch: Any) -> Any:
    """Mean cross-entropy."""
    return ops.cross_entropy(MODEL(p, batch[0]), batch[1])


def batches() -> Any:
    """Of numbers without a meaning, as large as those of digits."""
    rng = np.random.default_rng(0)
    images, labels = rng.standard_normal((1600, 64)).astype(np.float32), rng.integers(0, 10, 1600)
    return Dataset(images, labels).batches(64, seed=0)


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """How long it takes, and what it answers, which must be ok."""
    began = perf_counter()
    found = run()
    assert found, found
    return perf_counter() - began, found


def costs(mode: Any, given: argparse.Namespace, folder: Path) -> list[tuple[str, ...]]:
    """The rows of one record mode."""
    path, table = folder / f"{mode}.dgrr", list[tuple[str, ...]]()
    trainer = Trainer(
        loss_fn, MODEL.init(seed=0), Adam(1e-3), trace=Keep(path, record=mode, keyframe_every=given.keyframes)
    )
    training = trainer.fit(batches(), steps=given.steps, progress=False).seconds
    table.append((mode, "training", f"{training:.1f}", "", f"{path.stat().st_size / 1e6:.0f} MB"))
    whole, _ = seconds(lambda: replay(path, loss_fn=loss_fn, batches=batches()))
    table.append((mode, "replay with model", f"{whole:.1f}", "100 %", f"{given.steps} steps computed"))
    for jobs in sorted({1, given.jobs}):
        took, found = seconds(partial(audit, path, loss_fn, batches(), sample=given.sample, jobs=jobs))
        name = f"audit of {given.sample}, {jobs} process{'es' if jobs > 1 else ''}"
        table.append((mode, name, f"{took:.1f}", f"{took / whole:.1%}", found.notes[0]))
    return table


def rates(given: argparse.Namespace) -> Table:
    """How many of the forgeries pass, hidden as well as can be and scattered, beside what is stated."""
    table = Table("forged steps", "stated", f"hidden: passed of {FORGERIES}", "scattered", "standard deviation")
    for claim in claims(Units(given.steps, 1), given.sample):
        simulated = (given.steps, claim.steps, given.sample, given.keyframes, FORGERIES)
        hidden, scattered = (passed(b"bench", *simulated, hides=hides) for hides in (True, False))
        deviation = (FORGERIES * claim.passes * (1 - claim.passes)) ** 0.5
        table.add_row(str(claim.steps), f"{claim.passes:.4f}", str(hidden), str(scattered), f"{deviation:.1f}")
    return table


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option, value in (("steps", 10_000), ("keyframes", 100), ("sample", 32), ("jobs", 1)):
        parser.add_argument(f"--{option}", type=int, default=value)
    given = parser.parse_args()
    table = Table("recorded", "what", "seconds", "of replay", "")
    with tempfile.TemporaryDirectory() as folder:
        for mode in ("digest", "grads"):
            for row in costs(mode, given, Path(folder)):
                table.add_row(*row)
    Console().print(table)
    Console().print(rates(given))


if __name__ == "__main__":
    main()

"""Ten thousand replays and more: ``python tests/bench/stress.py [--steps N]``.

The 8-8-8 model at batch 64. Memory and addresses must stay as they are, and the state must be, at every power of
ten, what the eager step makes of the same batches. Exit code 1 if not.
"""

import argparse
import gc
import sys
import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgrr.runtime import Adam, CapturedStep, EagerStep, capture
from dgrr.tape import AnyVar, nn, ops

MODEL = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
BATCHES = 7
SETTLED = 50
"""Replays after which every cache has been filled."""
LIMIT = 1024
"""Bytes that may be held more: this program's own numbers."""


@dataclass(frozen=True)
class Stress:
    """What many replays left behind."""

    grown: int
    """Bytes of memory, traced by Python, that are held after many replays more than before them."""
    moved: list[str]
    """Arrays that are other objects or elsewhere than at the beginning."""
    differing: list[int]
    """Steps of those looked at after which the state was not what eager steps make."""


def loss_fn(p: Any, batch: Any) -> AnyVar:
    """The mean squared error."""
    inputs, targets = batch
    return ops.mse_loss(MODEL(p, inputs), targets)


def batches() -> list[Any]:
    """A few batches, used in turn."""
    rng = np.random.default_rng(0)
    return [tuple(rng.standard_normal((2, 64, 8)).astype(np.float32)) for _ in range(BATCHES)]


def stress(steps: int, compared: set[int]) -> Stress:
    """Replay ``steps`` times, and look at the state after some of them."""
    data = batches()
    step = capture(loss_fn, MODEL.init(seed=0), Adam(1e-3), data[0])
    eager = EagerStep(loss_fn, MODEL.init(seed=0), step.recipe)
    before, differing = places(step), list[int]()
    for k in range(1, steps + 1):
        step(data[k % BATCHES])
        eager(data[k % BATCHES])
        if k in compared and step.digest() != eager.digest():
            differing.append(k)
    grown = growth(step, data, steps)
    moved = [name for name, place in places(step).items() if place != before[name]]
    return Stress(grown, moved, differing)


def growth(step: CapturedStep, data: list[Any], steps: int) -> int:
    """How much more memory is held after so many replays more."""
    tracemalloc.start()
    for k in range(SETTLED):
        step(data[k % BATCHES])
    step.require_same("once it has settled")  # as runs 2, 4, 8, … do
    settled = held()
    for k in range(steps):
        step(data[k % BATCHES])
    grown = held() - settled
    tracemalloc.stop()
    return grown


def held() -> int:
    """Bytes that Python's allocators trace, its lists of spare objects emptied before."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def places(step: CapturedStep) -> dict[str, tuple[int, int]]:
    """Identity and address of every array that a replay reads or writes from outside."""
    named = {**step.params, **step.state, "loss": step.loss, **{f"grad/{n}": g for n, g in step.consumed.items()}}
    return {name: (id(array), int(array.ctypes.data)) for name, array in named.items()}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000)
    steps = parser.parse_args().steps
    found = stress(steps, {10**k for k in range(9) if 10**k <= steps} | {steps})
    print(f"{steps} replays: memory grown by {found.grown} bytes; moved: {found.moved}; differing: {found.differing}")
    return 0 if found.grown < LIMIT and not found.moved and not found.differing else 1


if __name__ == "__main__":
    sys.exit(main())

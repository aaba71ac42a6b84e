"""Small recorded runs: real rules, random gradients, so that every update can be recomputed."""

from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam
from dgrr.runtime.optim import Rule
from dgrr.tape import NUMERICS
from dgrr.trace import CompletedStep

from ..keeping import recorder_of

Arrays = dict[str, Any]
Said = dict[str, Any]
RecordRun = Callable[..., Path]


def _gradients(rng: np.random.Generator, params: Arrays, frozen: bool) -> Arrays:
    grads = {name: rng.standard_normal(p.shape).astype(p.dtype) for name, p in params.items()}
    if frozen:
        del grads["b"]
    return grads


def _trained(
    rng: np.random.Generator, rule: Rule, params: Arrays, state: Arrays, diverge: int | None
) -> Iterator[Said]:
    """Trains without end: what a recorder is told of each step."""
    dtype = params["w"].dtype
    for step in count():
        grads = _gradients(rng, params, step % 3 == 2)
        if step == diverge:
            grads["w"][1, 0] += 1
        batch = (rng.standard_normal((4, 3)).astype(dtype), rng.integers(0, 9, 4))
        rule.step(params, grads, state)
        yield {
            "step": step,
            "loss": np.array(1 / (step + 1), dtype),
            "hyper": rule.hyperparameters(),
            "grads": grads,
            "params": params,
            "state": state,
            "batch": batch,
        }


def _record(
    path: Path,
    *,
    steps: int = 6,
    dtype: type = np.float32,
    optimizer: str = "adam",
    diverge: int | None = None,
    seal: bool = True,
    seed: int = 0,
    events: bool = True,
    **options: Any,
) -> Path:
    rng = np.random.default_rng(seed)
    params = {"w": rng.standard_normal((3, 2)).astype(dtype), "b": np.zeros(2, dtype)}
    rule = Adam(1e-2) if optimizer == "adam" else SGD(1e-2, momentum=0.9)
    state = rule.init(params)
    options = {"record": "grads", "salt": bytes(16), "created_at": 7, "numerics": NUMERICS} | options
    hyperparameters = list(rule.hyperparameters())
    recorder = recorder_of(path, params=params, state=state, rule=rule.rule, hyperparameters=hyperparameters, **options)
    for said in islice(_trained(rng, rule, params, state, diverge), steps):
        recorder.step(CompletedStep(**said))
        if events and said["step"] == 1:
            recorder.event("note", "half-time")
    if not seal:
        recorder.close()
        return path.with_name(f"{path.name}.partial")
    recorder.seal()
    return path


@pytest.fixture
def record_run(tmp_path: Path) -> RecordRun:
    """Records a run and returns the path of the trace.

    `diverge` changes one gradient at that step; every third step leaves param "b" without a gradient.
    """

    def run(name: str = "run.dgrr", **options: Any) -> Path:
        return _record(tmp_path / name, **options)

    return run

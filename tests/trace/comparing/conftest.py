"""Recorded runs of two params that any step can tell another story of; nothing is compiled for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import CompletedStep, OpDigests
from dgrr.trace.v2.read.reader import TraceReader

from ...keeping import recorder_of

Told = dict[str, Any]
Mutation = Callable[[int, Told], None]
Write = Callable[..., Path]


def _start(dtype: type) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"w": rng.standard_normal((3, 2)).astype(dtype), "b": np.zeros(2, dtype)}


def _told(step: int, params: dict[str, Any], dtype: type, micro_batches: int) -> Told:
    rng = np.random.default_rng(100 + step)
    grads = {name: rng.standard_normal(p.shape).astype(dtype) for name, p in params.items()}
    return {
        "step": step,
        "loss": np.array(2 / (step + 1), dtype),
        "hyper": {"lr": 0.125, "momentum": 0.5},
        "grads": grads,
        "params": {name: p - dtype(0.125) * grads[name] for name, p in params.items()},
        "state": {"step": np.array(step + 1)},
        "model_state": {"mean": np.full(2, step, dtype)},
        "batch": rng.standard_normal((4, 3)),
        "micro_batches": micro_batches,
    }


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a run. `mutate(step, told)` may change what is told of a step, `begin(start)` what comes before."""

    def run(
        name: str,
        mutate: Mutation | None = None,
        *,
        steps: int = 8,
        begin: Callable[[dict[str, Any]], object] | None = None,
        dtype: type = np.float32,
        micro_batches: int = 1,
        seal: bool = True,
        **options: Any,
    ) -> Path:
        params, path = _start(dtype), tmp_path / name
        if begin is not None:
            begin(params)
        law = {"rule": "sgd@1", "hyperparameters": ["lr", "momentum"], "numerics": 1, "record": "full"}
        start = {"params": params, "state": {"step": np.array(0)}, "model_state": {"mean": np.zeros(2, dtype)}}
        recorder = recorder_of(path, **start, **{**law, **options})
        for step in range(steps):
            told = _told(step, params, dtype, micro_batches)
            if mutate is not None:
                mutate(step, told)
            params = told["params"]
            recorder.step(CompletedStep(**told))
        if not seal:
            recorder.close()
            return path.with_name(f"{name}.partial")
        recorder.seal()
        return path

    return run


@pytest.fixture
def give_ops(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[Path, dict[int, OpDigests]]], None]:
    """Makes traces answer with these digests of ops, by path and step."""

    def give(ops: dict[Path, dict[int, OpDigests]]) -> None:
        monkeypatch.setattr(TraceReader, "ops", lambda trace, step: ops.get(Path(trace.path), {}).get(step))

    return give

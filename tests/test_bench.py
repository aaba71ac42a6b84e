"""The benchmark of training steps still runs: dgrr alone, the two small models, nothing about speed."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCH = Path(__file__).parent / "bench"
SMALL = ("8-8-8", "64-128-128-10")


Load = Callable[[str], Any]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Import a module of the benchmark, as its command does."""
    monkeypatch.syspath_prepend(str(BENCH))
    return import_module


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command writes."""
    file = tmp_path_factory.mktemp("bench") / "steps.json"
    short = ["--rounds", "2", "--seconds", "0.01", "--json", str(file)]
    command = [sys.executable, str(BENCH / "steps.py"), "--engines", "dgrr", "--models", *SMALL, *short]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    written: dict[str, Any] = json.loads(file.read_text())
    return written


def first_loss(model: Any) -> float:
    """The loss of the first batch before training, in NumPy and float64."""
    x, targets = model.batches()[0]
    *hidden, last = ((w.astype(np.float64), b) for w, b in model.params())
    for weight, bias in hidden:
        x = np.maximum(x @ weight.T + bias, 0)
    out = x @ last[0].T + last[1]
    if model.loss == "mse":
        return float(np.mean((out - targets) ** 2))
    log_total = np.log(np.exp(out).sum(axis=1))
    return float(np.mean(log_total - out[np.arange(len(out)), targets]))


@pytest.mark.parametrize("name", SMALL)
def test_dgrr_is_measured(results: dict[str, Any], name: str, load: Load) -> None:
    figures = results["steps"][name]["engines"]["dgrr"]
    assert figures["losses"][0] == pytest.approx(first_loss(load("engines.models").MODELS[name]), rel=1e-5)
    assert len(set(figures["losses"])) == 3  # each step sees other parameters and another batch
    assert 0 < figures["fastest_us"] <= figures["median_us"] < math.inf


def test_the_machine_is_told(results: dict[str, Any]) -> None:
    assert results["machine"]["numpy"] == np.__version__
    assert results["machine"]["threads"] >= 1


def test_ratios_are_of_the_best_peer(load: Load) -> None:
    rounds, steps = load("rounds"), load("steps")
    times = {"dgrr": [4.0, 2.0, 3.0], "slow": [40.0, 40.0, 40.0], "quick": [12.0, 9.0, 13.0]}
    figures = {engine: rounds.Figures({}, [], each) for engine, each in times.items()}
    assert steps.ratios(figures) == {"median": 4.0, "fastest": 4.5}
    assert steps.ratios({"dgrr": figures["dgrr"]}) == {}


def test_an_engine_that_is_not_there_is_named(load: Load) -> None:
    figures, absent = load("rounds").measure({"none": "no_engine:make"}, SMALL[0], 1, 1, 0.01)
    assert figures == {}
    assert absent == {"none": "ModuleNotFoundError: No module named 'engines.no_engine'"}


def test_engines_that_disagree_are_no_benchmark(load: Load) -> None:
    rounds = load("rounds")
    figures = {"a": rounds.Figures({}, [1.0, 0.9]), "b": rounds.Figures({}, [1.0, 0.9002])}
    rounds.require_equal_losses(figures)
    figures["b"].losses[1] = 0.91
    with pytest.raises(rounds.EngineError, match=r"the losses of the first steps differ: \{'a': \[1.0, 0.9\], 'b'"):
        rounds.require_equal_losses(figures)


@pytest.mark.parametrize("task", ["differentiate", "capture"])
def test_chains_are_measured(load: Load, task: str) -> None:
    figures = load("alone").chain(task, "relu", 50)
    assert figures["us a node"] > 0
    assert figures["MiB"] >= 0

"""The benchmark of training steps still runs, and measures the same model in every engine; nothing about speed."""

import json
import math
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import EagerStep

pytestmark = pytest.mark.long

BENCH = Path(__file__).parents[1] / "bench"
SMALL = ("8-8-8", "64-128-128-10")
LARGER = ("cnn-8x8", "cnn-28x28", "conv-64", "transformer")
MAKERS = {"dgrr": "dgrr_engine:make", "torch": "torch_engine:make_channels_last", "jax": "jax_engine:make"}
INSTALLED = [engine for engine in MAKERS if find_spec(engine)]


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


@pytest.mark.parametrize("name", SMALL)
def test_dgrr_is_measured(results: dict[str, Any], name: str, load: Load) -> None:
    figures = results["steps"][name]["engines"]["dgrr"]
    expected = load("engines.numpy_models").first_loss(load("engines.models").MODELS[name])
    assert figures["losses"][0] == pytest.approx(expected, rel=1e-5)
    assert len(set(figures["losses"])) == 3  # each step sees other parameters and another batch
    assert 0 < figures["fastest_us"] <= figures["median_us"] < math.inf


@pytest.mark.parametrize("name", LARGER)
@pytest.mark.parametrize("engine", INSTALLED)
def test_every_engine_has_the_same_model(load: Load, engine: str, name: str) -> None:
    losses = load("rounds").start(MAKERS[engine], name, threads=1).losses
    assert losses[0] == pytest.approx(
        load("engines.numpy_models").first_loss(load("engines.models").MODELS[name]), rel=1e-4
    )


@pytest.mark.parametrize("name", [*SMALL, *LARGER])
def test_the_step_of_dgrr_is_the_eager_one(load: Load, name: str) -> None:
    model, engine, models = (
        load("engines.models").MODELS[name],
        load("engines.dgrr_engine"),
        load("engines.dgrr_models"),
    )
    captured = engine.captured(model, model.params())
    eager = EagerStep(models.loss_fn_of(model), models.renamed(model.params()), captured.recipe)
    for batch in model.batches()[:2]:
        assert captured(batch).tobytes() == eager(batch).tobytes()
    assert captured.digest() == eager.digest()


def test_how_images_lie_matters_to_models_of_images(load: Load) -> None:
    steps, models = load("steps"), load("engines.models").MODELS
    assert list(steps.chosen(steps.ENGINES, models["cnn-8x8"])) == list(steps.ENGINES)
    assert set(steps.ENGINES) - set(steps.chosen(steps.ENGINES, models["8-8-8"])) == set(steps.OF_IMAGES)


def test_the_gradients_of_every_value_are_measured(load: Load) -> None:
    steps, short = load("steps"), Namespace(threads=1, rounds=1, seconds=0.01)
    row = steps.tax(SMALL[0], steps.GRADIENTS["dgrr"], short)
    assert row["ratio"] == row["every value"] / row["parameters only"] > 0
    absent = steps.tax(SMALL[0], {"parameters only": "no_engine:make"}, short)
    assert absent == {"parameters only": "absent: ModuleNotFoundError: No module named 'engines.no_engine'"}


def test_a_profile_is_of_the_captured_step(load: Load) -> None:
    called = Counter(call.kernel for call in load("alone").profile(SMALL[0], 1))
    model = load("engines.models").MODELS[SMALL[0]]
    lowered = load("engines.dgrr_engine").captured(model, model.params()).lowered
    assert called == Counter(op.kernel.name for op in lowered.ops)


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
    assert figures["backward" if task == "differentiate" else "recording, twice"] > 0
    assert figures["bytes"] >= 0


def test_a_limit_is_the_slower_of_arithmetic_and_bytes(load: Load) -> None:
    ceiling = load("engines.ceiling").Ceiling(flops=1e9, sizes=[1 << 10, 1 << 12], bandwidths=[4e9, 2e9])
    assert ceiling.least(flops=3000, nbytes=1 << 10) == 3e-6
    assert ceiling.least(flops=0, nbytes=1 << 11) == pytest.approx((1 << 11) / 3e9)
    assert ceiling.least(flops=0, nbytes=1 << 20) == (1 << 20) / 2e9


def test_what_the_machine_is_measured_by_computes(load: Load) -> None:
    ceiling = load("engines.ceiling")
    multiply_add, addition = ceiling.multiply_add(), ceiling.addition(1 << 12)
    multiply_add(3)
    assert multiply_add.args[0].tolist() == [0.9375] * ceiling.lanes()  # 0.5 times 0.5 and 0.5 more, three times
    addition(2)
    assert addition.args[0].tolist() == [2.0] * ((1 << 12) // 12)


def test_a_step_is_held_against_its_limit(load: Load) -> None:
    limits, wanted = load("limits"), Namespace(engines=["dgrr"], rounds=1, seconds=0.01, kernels=False)
    ceiling = load("engines.ceiling").Ceiling(flops=1e30, sizes=[1, 1 << 20], bandwidths=[1e9, 1e9])
    found = limits.row(SMALL[0], 1, wanted, ceiling, {"dgrr": 0.0})
    touched = sum(call.nbytes for call in load("alone").profile(SMALL[0], 1))
    assert found["limit us"] == pytest.approx(touched / 1e3)
    assert found["of it"] == found["limit us"] / found["dgrr us"]
    assert [limits.goal(length) for length in (10.0, 60.0, 2000.0)] == ["", 0.65, 0.80]


def test_the_memory_of_a_step_is_measured(results: dict[str, Any]) -> None:
    held = [results["steps"][name]["engines"]["dgrr"]["peak_mib"] for name in SMALL]
    assert all(abs(mib) < 30 for mib in held)  # both are small networks

"""What a trainer says is worth a look in a fit, in every mode, and that its trace says the same."""

import json

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, Trainer
from dgrr.runtime.optim import Constant, WarmUp
from dgrr.tape import nn, ops
from dgrr.trace.cli import main
from dgrr.trace.showing.overview import overview

MODEL = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def loss_of(p, batch):
    return ops.cross_entropy(MODEL(p, batch[0]), batch[1])


def batches():
    rng = np.random.default_rng(1)
    return [(rng.standard_normal((16, 4)).astype(np.float32), rng.integers(0, 3, 16)) for _ in range(8)]


def fit(params, optimizer=None, **options):
    return Trainer(loss_of, params, optimizer or Adam(1e-3), **options).fit(batches(), epochs=3)


def kinds(result):
    return [finding.kind for finding in result.findings]


def begun(fault):
    params = MODEL.init(seed=0)
    if fault == "no gradient":
        params["forgotten"] = np.ones(3, np.float32)
    elif fault == "dead units":
        params["0.bias"] = params["0.bias"] - 20 * (np.arange(8) < 4).astype(np.float32)
    elif fault == "equal by symmetry":
        params["0.weight"] = np.full_like(params["0.weight"], 0.5)
        params["0.bias"], params["2.weight"] = params["0.bias"] * 0, np.ones_like(params["2.weight"])
    return params


@pytest.mark.parametrize("fault", ["no gradient", "dead units", "equal by symmetry"])
@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_a_planted_fault_is_found_by_trainer_and_trace(fault, mode, tmp_path, capsys):
    path = str(tmp_path / "run.dgrr")
    result = fit(begun(fault), mode=mode, trace=path)
    assert fault in kinds(result)
    assert str(result.findings[0]) in result.about()["worth a look"]
    assert main(["show", path, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["result"]["run"]["findings"]
    assert [f"{each['text']}; {each['advice']}" for each in told] == [str(each) for each in result.findings]


@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_a_sound_run_says_nothing(mode):
    result = fit(begun("nothing"), mode=mode)
    assert result.findings == ()
    assert "worth a look" not in str(result)


def test_frozen_parameters_are_no_finding():
    assert fit(begun("no gradient"), frozen=["forgotten"]).findings == ()


def test_a_rate_that_begins_at_zero_is_no_finding():
    assert fit(begun("nothing"), Adam(WarmUp(Constant(1e-3), 1000))).findings == ()


def test_updates_too_small():
    assert kinds(fit(begun("nothing"), SGD(1e-9))) == ["small updates"]


def test_a_run_that_goes_on_may_have_come_to_the_end_of_its_rate():
    trainer = Trainer(loss_of, begun("nothing"), SGD(1e-9))
    assert kinds(trainer.fit(batches())) == ["small updates"]
    assert trainer.fit(batches()).findings == ()


@pytest.mark.parametrize(("rate", "found"), [(0.95, ["large updates"]), (0.001, [])])
def test_updates_that_overshoot(rate, found):
    trainer = Trainer(lambda p, x: ops.square(p["w"] * x).sum(), {"w": np.arange(6.0).reshape(3, 2)}, SGD(rate))
    assert kinds(trainer.fit([np.ones(2)] * 8)) == found


def test_clipping_in_most_steps(tmp_path):
    result = fit(begun("nothing"), clip_norm=1e-3, trace=tmp_path / "run.dgrr")
    assert kinds(result) == ["clipped"]
    assert overview(str(tmp_path / "run.dgrr")).findings == result.findings
    assert fit(begun("nothing"), clip_norm=100.0).findings == ()


@pytest.mark.parametrize(("reduce", "found"), [("sum", ["short batches"]), ("mean", [])])
def test_a_sum_over_rows_at_short_batches(reduce, found):
    def loss(p, x):
        return getattr(ops.square(x @ p["w"]), reduce)()

    rows = [np.ones((n, 3)) for n in (32, 32, 32, 32, 32, 8)]
    result = Trainer(loss, {"w": np.arange(6.0).reshape(3, 2)}, SGD(1e-6)).fit(rows, epochs=5)
    assert kinds(result) == found

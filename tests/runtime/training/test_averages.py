"""Running averages of parameters: state of the run like any other."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, Callback, CheckpointError, Trainer, capture
from dgrr.runtime.optim import ops_rule
from dgrr.runtime.training.step_runner import StepMode
from dgrr.tape import DomainError, ops
from dgrr.trace import Verdict, at, diff_with_model, open_trace, replay, validate

DECAY = 0.75
MODES: tuple[StepMode, ...] = ("eager", "capture", "replay")


def model(p: Any, x: Any) -> Any:
    return ops.linear(x, p["w"], p["b"])


def loss_fn(p: Any, x: Any) -> Any:
    return (model(p, x) - 1.0).square().mean()


def params() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"w": rng.standard_normal((2, 3)).astype(np.float32), "b": np.zeros(2, np.float32)}


def batches() -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal((4, 3)).astype(np.float32) for _ in range(6)]


def trainer(**options: Any) -> Trainer:
    return Trainer(loss_fn, params(), Adam(0.1), **{"ema": DECAY, **options})


class Follow(Callback):
    """Averages in numpy, from the parameters after each step."""

    def __init__(self) -> None:
        self.expected = params()

    def on_step(self, run: Trainer, step: int, loss: float) -> None:
        old, new = np.float32(DECAY), np.float32(1 - DECAY)
        self.expected = {name: old * a + new * run.params[name] for name, a in self.expected.items()}


@pytest.mark.parametrize("mode", MODES)
def test_the_averages_are_those_of_numpy(mode: StepMode) -> None:
    follow = Follow()
    run = trainer(mode=mode, callbacks=[follow])
    run.fit(batches(), progress=False)
    plain = Trainer(loss_fn, params(), Adam(0.1), mode=mode)
    plain.fit(batches(), progress=False)
    for name, expected in follow.expected.items():
        assert run.averaged[name].tobytes() == expected.tobytes()
        assert run.params[name].tobytes() == plain.params[name].tobytes()  # the training is the same


def test_a_captured_step_with_averages_is_verified() -> None:
    report = capture(loss_fn, params(), {"b": SGD(0.1), "*": Adam(0.1)}, batches()[0], ema=DECAY).verify(3)
    assert report.ok, report


def test_the_trace_proves_them(tmp_path: Path) -> None:
    for options in ({}, {"frozen": ["b"]}, {"record": "digest"}):
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        run = trainer(trace=path, **options)
        run.fit(batches(), progress=False)
        assert validate(path).ok
        report = replay(path, loss_fn=loss_fn, batches=batches())
        assert (report.update, report.gradient) == ("proven", "proven"), report
        assert diff_with_model(path, loss_fn, batches(), params=params()).same
        past = at(path, 5, loss_fn, batches())
        assert past.state["ema/w"].shape == (2, 3)
    with open_trace(tmp_path / "1") as trace:
        assert [g.rule for g in trace.schema.groups] == ["adam@1", "ema@1", "frozen@1"]
        assert trace[0].hyper["decay#1"] == DECAY


def test_averages_that_are_not_what_the_rule_makes_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer(trace=tmp_path / "t").fit(batches(), progress=False)
    monkeypatch.setattr("dgrr.runtime.optim.averages.Averages.step", lambda self, params, state: None)
    report = replay(tmp_path / "t")
    assert report.verdict is Verdict.UPDATE
    assert report.findings[0].tensor == "ema/w"


def test_a_run_goes_on_with_them(tmp_path: Path) -> None:
    whole = trainer().fit(batches(), epochs=2, progress=False)
    first = trainer()
    first.fit(batches(), progress=False)
    first.save(tmp_path / "c")
    second = trainer()
    second.load(tmp_path / "c")
    assert second.averaged["w"].tobytes() == first.averaged["w"].tobytes()
    assert second.fit(batches(), progress=False).state_digest == whole.state_digest
    with pytest.raises(CheckpointError, match=r"ema: it was saved with 0\.75, this run has 0\.5"):
        trainer(ema=0.5).load(tmp_path / "c")
    with pytest.raises(CheckpointError, match=r"ema: it was saved with 0\.75, this run has None"):
        trainer(ema=None).load(tmp_path / "c")


@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_evaluation_with_averages(mode: StepMode) -> None:
    run = trainer(mode=mode, frozen=["b"])
    run.fit(batches(), progress=False)
    other = Trainer(loss_fn, run.averaged, SGD(0.1), mode=mode)
    assert run.evaluate(batches(), averages=True) == other.evaluate(batches())
    assert run.evaluate(batches()) != other.evaluate(batches())
    inputs = batches()[0]
    np.testing.assert_array_equal(run.predict(inputs, model=model, averages=True), other.predict(inputs, model=model))
    before = run.evaluate(batches(), averages=True)
    run.fit(batches(), progress=False)
    assert run.evaluate(batches(), averages=True) != before  # the averages as they are now


@ops_rule("own_average@1")
def OwnAverage(p: Any, g: Any, ema: Any, *, lr: Any) -> Any:  # noqa: N802
    return p - lr * g, ema


def test_what_is_refused() -> None:
    with pytest.raises(DomainError, match="ema: expected rules without a buffer 'ema', which is the run's own"):
        Trainer(loss_fn, params(), OwnAverage(0.1), ema=0.5)
    with pytest.raises(DomainError, match=r"^ema: expected a finite number in \[0, 1\), got 1\.0"):
        trainer(ema=1.0)
    text = "averaged: expected a run that keeps averages, got one without; make it with ema=0.999"
    plain = trainer(ema=None)
    for ask in (lambda: plain.averaged, lambda: plain.evaluate(batches(), averages=True)):
        with pytest.raises(DomainError, match=text):
            ask()

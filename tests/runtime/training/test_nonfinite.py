"""Training on through values that are not finite, as the rule says, with a trace that proves it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, NonFiniteError, Trainer
from dgrr.tape import DomainError, ops
from dgrr.trace import (
    CompletedStep,
    NonFiniteStepError,
    Run,
    Verdict,
    at,
    compare,
    open_trace,
    replay,
    validate,
)

from ...keeping import recorder_of

GOOD, BAD = np.array([1.0, 2.0]), np.array([np.inf, -1.0])
PARAMS = {"w": np.array([0.5, -0.5]), "b": np.array([0.1])}


def loss_fn(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum() + (p["b"] * p["b"]).sum()


def steep_loss(p: Any, x: Any) -> Any:
    """Its loss is finite, and the gradient of b is not."""
    return (p["w"] * x).sum() + (ops.sin(p["b"] * 1e300) * 1e300).sum()


def trained(mode: str, batches: list[Any], *, loss: Any = loss_fn, steps: int = 4, **options: Any) -> Trainer:
    options.setdefault("on_nonfinite", "record")
    trainer = Trainer(loss, PARAMS, options.pop("rule", None) or Adam(0.1), mode=mode, **options)  # type: ignore[arg-type]
    trainer.fit(batches, steps=steps, progress=False)
    return trainer


def traced(path: Path, mode: str, **options: Any) -> Trainer:
    return trained(mode, [GOOD, BAD], trace=path, **options)


def test_the_run_goes_on_and_the_history_says_where(tmp_path: Path) -> None:
    trainer = traced(tmp_path / "t", "replay")
    assert trainer.steps == 4
    assert trainer.history.nonfinite == (1, 2, 3)  # Adam's moments are infinite from then on, and w is NaN
    assert np.isfinite(trainer.history["loss"]).tolist() == [True, False, False, False]
    assert np.isnan(trainer.params["w"][0])
    assert np.isfinite(trainer.params["b"]).all()
    assert trained("replay", [GOOD]).history.nonfinite == ()


def test_a_gradient_alone(tmp_path: Path) -> None:
    """The loss is finite: only the gradient of b is not."""
    trainer = trained("eager", [GOOD], loss=steep_loss, steps=1, rule=SGD(0.1), trace=tmp_path / "t")
    assert np.isfinite(trainer.history["loss"]).all()
    assert trainer.history.nonfinite == (0,)
    with open_trace(tmp_path / "t") as trace:
        assert trace[0].nonfinite


@pytest.mark.parametrize("options", [{}, {"clip_norm": 1.0}, {"clip_value": 0.5}, {"accumulate": 2}])
def test_eager_and_captured_have_the_same_bits(tmp_path: Path, options: dict[str, Any]) -> None:
    a, b = (traced(tmp_path / mode, mode, **options) for mode in ("eager", "replay"))
    assert a._step.digest() == b._step.digest()
    assert compare(tmp_path / "eager", tmp_path / "replay", proven=True).same
    with open_trace(tmp_path / "eager") as one, open_trace(tmp_path / "replay") as two:
        assert [view.link for view in one] == [view.link for view in two]
        flagged = tuple(view.step for view in one if view.nonfinite)
        assert flagged == a.history.nonfinite == b.history.nonfinite
        assert flagged


@pytest.mark.parametrize("record", ["grads", "digest"])
def test_replay_and_reexecution_prove_it(tmp_path: Path, record: Any) -> None:
    traced(tmp_path / "t", "replay", record=record, clip_norm=1.0)
    report = replay(tmp_path / "t", loss_fn=loss_fn, batches=[GOOD, BAD])
    assert report.ok, str(report)
    assert (report.update, report.gradient, report.data) == ("proven",) * 3
    if record == "grads":
        assert replay(tmp_path / "t").ok
    assert np.isnan(at(tmp_path / "t", 3, loss_fn, [GOOD, BAD]).params["w"]).any()
    other = replay(tmp_path / "t", loss_fn=loss_fn, batches=[GOOD, np.array([-np.inf, -1.0])])
    assert other.verdict is Verdict.DATA


def test_nans_are_recorded_in_one_form(tmp_path: Path) -> None:
    """Whatever their sign and payload are: of the loss, of gradients, of states and of the scale of clipping."""
    links = []
    for i, bits in enumerate((0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001)):
        nan = np.array(bits, np.uint64).view(np.float64)
        w = np.array([1.0, nan])
        told: dict[str, Any] = {"hyper": {"lr": 0.5}, "grads": {"w": w}, "params": {"w": w}, "state": {}, "batch": w}
        start: dict[str, Any] = {"params": {"w": np.ones(2)}, "state": {}, "rule": "sgd@1", "hyperparameters": ["lr"]}
        options: dict[str, Any] = {"record": "full", "numerics": 1, "on_nonfinite": "record"}
        with recorder_of(tmp_path / str(i), **start, **options) as recorder:
            recorder.step(CompletedStep(step=0, loss=nan, clip=(1.0, float(nan)), **told))
            links.append(recorder.link)
        assert validate(tmp_path / str(i)).ok
        with open_trace(tmp_path / str(i)) as trace:
            bits_of = [
                trace[0].record.loss,
                trace[0].grad("w")[1],
                trace[0].after()["w"][1],
                np.array(trace[0].clip)[1],
            ]
            assert {np.asarray(a).view(np.uint64).item() for a in bits_of} == {0x7FF8000000000000}
    assert len(set(links)) == 1


def test_a_run_that_stops_is_as_before(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteError, match="fit: step 1: "):
        trained("replay", [GOOD, BAD], trace=tmp_path / "t", on_nonfinite="stop")
    with open_trace(tmp_path / "t") as trace:
        assert len(trace) == 1
        assert not trace[0].nonfinite


def test_a_recorder_stops_unless_it_is_told(tmp_path: Path) -> None:
    w = np.array([np.nan])
    told: dict[str, Any] = {"hyper": {}, "grads": {}, "params": {"w": w}, "state": {}, "batch": w}
    recorder = recorder_of(
        tmp_path / "t", params={"w": np.ones(1)}, state={}, rule="sgd@1", hyperparameters=[], numerics=1
    )
    with pytest.raises(NonFiniteStepError, match="got nan in 'loss' of step 0; nothing of it was written"):
        recorder.step(CompletedStep(step=0, loss=np.array(np.nan), **told))
    assert recorder.steps == 0
    recorder.close()
    with pytest.raises(DomainError) as caught:
        Run({}, {}, [], numerics=1, on_nonfinite="skip")  # type: ignore[arg-type]
    assert str(caught.value) == "Run: argument 'on_nonfinite': expected 'stop' or 'record', got 'skip'"


def test_another_word_is_refused() -> None:
    with pytest.raises(DomainError, match="on_nonfinite: expected 'stop' or 'record', got 'skip'"):
        trained("eager", [GOOD], on_nonfinite="skip")


def test_a_checkpoint_knows_it(tmp_path: Path) -> None:
    """And one of a run that stops is as those of earlier versions, which say nothing of it."""
    place = tmp_path / "c"
    options: dict[str, Any] = {"mode": "eager", "on_nonfinite": "record", "trace": tmp_path / "t"}
    whole = traced(tmp_path / "whole", "eager")
    trainer = trained("eager", [GOOD, BAD], steps=2, checkpoint=place)
    assert trainer._run.law["on_nonfinite"] == "record"
    again = Trainer(loss_fn, PARAMS, Adam(0.1), **options)
    again.load(place)
    assert again._step.digest() != whole._step.digest()
    with pytest.raises(ValueError, match="on_nonfinite: it was saved with record, this run has None"):
        Trainer(loss_fn, PARAMS, Adam(0.1)).load(place)


def test_a_resumed_trace(tmp_path: Path) -> None:
    def run(path: Path, dies: bool) -> None:
        def tell(trainer: Any, step: int, loss: float) -> None:
            if dies and step == 2:
                raise KeyboardInterrupt

        place = path.with_suffix(".ckpt")
        callback = type("Dies", (), {"on_step": staticmethod(tell)})()
        saved: dict[str, Any] = {"checkpoint": place, "checkpoint_every": 2, "on_nonfinite": "record"}
        trainer = Trainer(loss_fn, PARAMS, Adam(0.1), mode="eager", trace=path, callbacks=[callback], **saved)
        if place.exists():
            trainer.load(place)
        trainer.fit([GOOD, BAD], steps=4, progress=False)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "t", dies=True)
    run(tmp_path / "t", dies=False)
    run(tmp_path / "whole", dies=False)
    assert compare(tmp_path / "t", tmp_path / "whole").same
    with open_trace(tmp_path / "t") as trace:
        assert [view.nonfinite for view in trace] == [False, True, True, True]

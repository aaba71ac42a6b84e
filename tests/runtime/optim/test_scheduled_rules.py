"""Rules with schedules: what they compute, what they are as values, how runs are recorded, and every error."""

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import Trainer, gradients
from dgrr.runtime.optim import (
    SGD,
    Adam,
    AdamW,
    Constant,
    Cosine,
    OneCycle,
    Rule,
    Schedule,
    StepDecay,
    WarmUp,
    make_rule,
)
from dgrr.tape import NUMERICS, ops
from dgrr.trace import CompletedStep, Verdict, open_trace, replay

from ...keeping import recorder_of

Array = npt.NDArray[Any]

SCHEDULES: list[Schedule] = [
    Constant(0.3),
    StepDecay(0.1, every=7, factor=0.3),
    OneCycle(0.3, steps=17, warmup_share=0.41, div=3.0, final_div=7.0),
    WarmUp(WarmUp(Cosine(0.1, steps=9), steps=3, start=0.5), steps=4, start=0.1),
]
RULES: list[Callable[[Any], Rule]] = [
    lambda lr: SGD(lr, weight_decay=0.1),
    lambda lr: SGD(lr, 0.9, nesterov=True),
    Adam,
    lambda lr: AdamW(lr, weight_decay=0.1),
]
every_rule = pytest.mark.parametrize("make", RULES, ids=["sgd", "nesterov", "adam", "adamw"])


@every_rule
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_is_that_of_rules_replaced_step_by_step(make: Callable[[Any], Rule], dtype: type) -> None:
    schedule = WarmUp(Cosine(0.1, steps=4), steps=3, start=0.5)
    rule, rng = make(schedule), np.random.default_rng(0)
    params: dict[str, Array] = {"w": rng.standard_normal(5).astype(dtype)}
    state = rule.init(params)
    others = {name: array.copy() for name, array in params.items()}
    other_state = {name: array.copy() for name, array in state.items()}
    for k in range(9):
        grads = {"w": rng.standard_normal(5).astype(dtype)}
        rule.step(params, grads, state)
        make(schedule(k)).step(others, grads, other_state)
        for name, array in (others | other_state).items():
            assert (params | state)[name].tobytes() == array.tobytes(), (k, name)


@every_rule
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_hyperparameters_of_a_step(make: Callable[[Any], Rule], schedule: Schedule) -> None:
    rule = make(schedule)
    assert rule.schedule is schedule
    for step in (1, 2, 14, 1000):
        plain = make(schedule(step - 1))
        assert rule.hyper_at(step).tolist() == plain.hyper.tolist()
        assert rule.hyperparameters(step) == plain.hyperparameters()
        assert make_rule(rule.rule, rule.hyperparameters(step)) == plain
        assert plain.law == rule.law
    assert np.isnan(rule.hyper[0])
    assert rule.hyper[1:].tolist() == plain.hyper[1:].tolist()


def test_a_plain_rule_has_the_same_hyperparameters_at_every_step() -> None:
    rule = Adam(0.25)
    assert rule.schedule is None
    assert rule.lr == 0.25
    assert rule.hyperparameters(7) == rule.hyperparameters()
    assert rule.hyper_at(7) is rule.hyper


def test_rules_and_schedules_are_values() -> None:
    rule = Adam(Cosine(1e-3, steps=1000))
    assert rule == Adam(lr=Cosine(0.001, 1000, 0)) != Adam(Cosine(1e-3, 999)) != Adam(1e-3)
    assert hash(rule) == hash(Adam(Cosine(1e-3, 1000)))
    assert repr(rule).startswith("Adam(lr=Cosine(lr=0.001, steps=1000, final=0.0), betas=")
    assert eval(repr(SCHEDULES[-1])) == SCHEDULES[-1]
    assert replace(rule, lr=0.5) == Adam(0.5)
    assert Cosine(1, np.int64(5)) == Cosine(1.0, 5)
    with pytest.raises(FrozenInstanceError):
        SCHEDULES[0].lr = 2.0  # type: ignore[attr-defined]  # pyright: ignore
    with pytest.raises(ValueError, match="read-only"):
        SCHEDULES[0].numbers[0] = 2.0


# Runs.


def loss_fn(p: Any, batch: Any) -> Any:
    x, y = batch
    return ops.mse_loss(ops.linear(x, p["w"], p["b"]), y)


def batches() -> list[Any]:
    rng = np.random.default_rng(3)
    return [(rng.standard_normal((4, 3)), rng.standard_normal((4, 2))) for _ in range(6)]


START = {"w": np.full((2, 3), 0.1), "b": np.zeros(2)}


def test_the_trainer_takes_a_schedule() -> None:
    schedule = OneCycle(0.1, steps=6)
    trainer = Trainer(loss_fn, START, Adam(schedule))
    trainer.fit(batches(), progress=False)
    params, state = {n: a.copy() for n, a in START.items()}, Adam().init(START)
    for k, batch in enumerate(batches()):
        grads = gradients(loss_fn, params, batch)[1]
        Adam(schedule(k)).step(params, grads, state)
    assert {n: a.tobytes() for n, a in trainer.params.items()} == {n: a.tobytes() for n, a in params.items()}


def record(path: Path, shift: int) -> Path:
    """Record a run whose STEPs claim the rates of ``shift`` steps later."""
    rule = AdamW(WarmUp(Cosine(0.1, steps=4), steps=2))
    params = {name: array.copy() for name, array in START.items()}
    state, rng = rule.init(params), np.random.default_rng(0)
    with recorder_of(
        path, record="grads", params=params, state=state, rule=rule.rule, hyperparameters=rule.names, numerics=NUMERICS
    ) as recorder:
        for k in range(6):
            grads = {name: rng.standard_normal(array.shape) for name, array in params.items()}
            rule.step(params, grads, state)
            hyper = rule.hyperparameters(int(state["step"]) + shift)
            loss, batch = np.array(0.5), batches()[k]
            recorder.step(
                CompletedStep(step=k, loss=loss, hyper=hyper, grads=grads, params=params, state=state, batch=batch)
            )
    return path


def test_updates_of_a_recorded_schedule_are_proven(tmp_path: Path) -> None:
    path = record(tmp_path / "t.dgrr", shift=0)
    report = replay(path)
    assert report.ok, report
    assert report.update == "proven"
    with open_trace(path) as trace:
        rates = [view.hyper["lr"] for view in trace]
    swing = 0.05 * math.sqrt(0.5)
    assert rates == pytest.approx([0.0, 0.05, 0.1, 0.05 + swing, 0.05, 0.05 - swing], rel=1e-15)


def test_updates_with_other_rates_than_recorded_are_refused(tmp_path: Path) -> None:
    assert replay(record(tmp_path / "t.dgrr", shift=1)).verdict is Verdict.UPDATE

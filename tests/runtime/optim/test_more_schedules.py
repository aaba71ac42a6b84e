"""Schedules written in ops and joined: against PyTorch's formulas, captured as eager, recorded, refused."""

from collections.abc import Callable
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, AdamW, Trainer, capture
from dgrr.runtime.optim import (
    Constant,
    Cosine,
    CosineRestarts,
    Exponential,
    FunctionSchedule,
    Joined,
    Linear,
    MultiStep,
    Polynomial,
    RMSprop,
    Schedule,
    StepDecay,
    Table,
    WarmUp,
)
from dgrr.tape import DomainError, Tape, ops
from dgrr.trace import open_trace, replay

from .by_hand import binary_power

LAST = 30


def restarted(count: int) -> float:
    """torch.optim.lr_scheduler.CosineAnnealingWarmRestarts, T_0=3, T_mult=2, eta_min=0.1."""
    period = 3
    while count >= period:
        count, period = count - period, period * 2
    return 0.1 + (0.7 - 0.1) * (1 + cos(pi * count / period)) / 2


FORMULAS: list[tuple[Schedule, Callable[[int], float]]] = [
    (Exponential(0.1, 0.9), lambda t: 0.1 * 0.9**t),
    (Polynomial(0.1, steps=10, power=2.5), lambda t: 0.1 * (1 - min(t, 10) / 10) ** 2.5),
    (Polynomial(0.3, steps=7, final=0.1), lambda t: 0.1 + 0.2 * (1 - min(t, 7) / 7)),
    (Linear(0.1, steps=8, final=0.4), lambda t: 0.1 + 0.3 * min(t, 8) / 8),
    (WarmUp(Linear(0.1, steps=5), steps=4), lambda t: 0.1 * t / 4 if t < 4 else 0.1 - 0.1 * min(t - 4, 5) / 5),
    (CosineRestarts(0.7, steps=5), lambda t: 0.7 * (1 + cos(pi * (t % 5) / 5)) / 2),
    (CosineRestarts(0.7, steps=3, longer=2, final=0.1), restarted),
    (MultiStep(0.1, at=[2, 9, 10], factor=0.5), lambda t: 0.1 * 0.5 ** sum(t >= at for at in (2, 9, 10))),
    (Table([0.3, 0.1, 0.2]), lambda t: [0.3, 0.1, 0.2][min(t, 2)]),
    (FunctionSchedule(lambda count: 0.5 / ops.sqrt(count + 1.0)), lambda t: 0.5 / (t + 1) ** 0.5),
    (Joined([Linear(0.0, 4, 0.2), Cosine(0.2, steps=6), Constant(0.05)], at=[4, 9]),
     lambda t: 0.2 * t / 4 if t < 4 else 0.1 * (1 + cos(pi * (t - 4) / 6)) if t < 9 else 0.05),
]  # fmt: skip
every = pytest.mark.parametrize(("schedule", "formula"), FORMULAS, ids=[str(schedule) for schedule, _ in FORMULAS])


@every
def test_rates_are_those_of_the_formulas(schedule: Schedule, formula: Callable[[int], float]) -> None:
    found = [schedule(count) for count in range(LAST)]
    np.testing.assert_allclose(found, [formula(count) for count in range(LAST)], rtol=1e-14, atol=1e-16)


def loss_fn(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum()


@every
def test_captured_steps_have_the_bits_of_the_rates(schedule: Schedule, formula: Callable[[int], float]) -> None:
    """Several updates in one launch: the rate is computed in the graph from the count."""
    step = capture(loss_fn, {"w": np.zeros(1)}, SGD(schedule), np.ones(1))
    for count in range(LAST // 2):
        before = step.params["w"].copy()
        step.replay(1)
        assert step.params["w"][0] == before[0] - schedule(count), count


def test_other_hyperparameters_stay() -> None:
    for rule in (AdamW(Linear(0.1, 5), weight_decay=0.5), RMSprop(Joined([Constant(0.1), Linear(0.1, 5)], at=[2]))):
        step = capture(lambda p, x: (p["w"] * x).square().sum(), {"w": np.ones(3)}, rule, np.ones(3))
        assert step.verify(3).ok


@pytest.mark.parametrize(
    "schedule", [Table([0.1, 0.2, 0.05]), Joined([Constant(0.1), Linear(0.2, 3)], at=[2])], ids=str
)
def test_recorded_as_bits_and_replayed(schedule: Schedule, tmp_path: Path) -> None:
    run = Trainer(loss_fn, {"w": np.zeros(2)}, SGD(schedule), trace=tmp_path / "t")
    assert run.lr == schedule(0)
    history = run.fit([np.ones(2)] * 5, progress=False).history
    expected = [schedule(count) for count in range(5)]
    with open_trace(tmp_path / "t") as trace:
        assert [view.hyper["lr"] for view in trace] == expected
    assert history["lr"].tolist() == expected
    assert run.lr == schedule(5)
    assert replay(tmp_path / "t").update == "proven"


def test_joined_schedules_keep_their_bits() -> None:
    parts = [WarmUp(Cosine(0.3, steps=7), steps=3), StepDecay(0.1, every=2, factor=0.3), Polynomial(0.2, 9, 1.5)]
    joined = Joined(parts, at=[5, 11])
    assert [joined(t) for t in range(LAST)] == [
        parts[0](t) if t < 5 else parts[1](t - 5) if t < 11 else parts[2](t - 11) for t in range(LAST)
    ]


def line(lr: float, steps: int, final: float, count: int) -> float:
    u = min(count, steps) / steps
    return lr * (1.0 - u) + final * u


@pytest.mark.parametrize("count", [*range(12), 1000, 2**53 - 1])
def test_bits_of_the_formulas_one_operation_at_a_time(count: int) -> None:
    assert Linear(0.1, 7, 0.4)(count) == line(0.1, 7, 0.4, count)
    assert Exponential(0.1, 0.9)(count) == 0.1 * binary_power(0.9, count)
    left = 1.0 - min(count, 9) / 9
    assert Polynomial(0.3, 9, 3.0, 0.1)(count) == 0.1 + (0.3 - 0.1) * binary_power(left, 3)
    root = ops.power(Tape[Any]().const(np.array(left)), 0.7).item()
    assert Polynomial(0.3, 9, 0.7, 0.1)(count) == 0.1 + (0.3 - 0.1) * root


IN_OPS: list[Schedule] = [
    Constant(0.3), StepDecay(0.1, every=3, factor=0.7), Exponential(0.1, 0.9), Linear(0.1, 8, 0.4),
    MultiStep(0.1, [5], 0.5), Polynomial(0.3, 9, 2.5), Polynomial(0.3, 9, 2.0),
    WarmUp(WarmUp(Linear(0.3, 5), 3, 0.1), 4, 0.2),
]  # fmt: skip


@pytest.mark.parametrize("schedule", IN_OPS, ids=str)
def test_the_rate_in_ops_has_the_same_bits(schedule: Schedule) -> None:
    for count in (*range(LAST), 10**6, 2**52 + 1, 2**53 - 1):
        rate = schedule.rate(Tape[Any]().const(np.array(float(count))))
        assert rate.item().hex() == schedule(count).hex(), count


def test_a_rate_in_ops_can_be_differentiated() -> None:
    """A line falls by ``lr / steps`` at each count."""
    tape = Tape[Any]()
    count = tape.leaf(np.array(2.0))
    found = tape.backward_dense(Linear(0.5, steps=8).rate(count))[count]
    assert found is not None
    assert found.item() == -0.5 / 8


def test_a_rate_that_no_ops_give_is_refused() -> None:
    with pytest.raises(DomainError, match="in ops: expected a formula of operations that are ops, got a fused"):
        Cosine(0.1, 5).rate(Tape[Any]().const(np.array(2.0)))


def half(count: Any) -> Any:
    return 0.5 + 0.0 * count


def test_a_schedule_of_a_function_is_known_by_its_name() -> None:
    assert repr(FunctionSchedule(half)) == "FunctionSchedule(half)"
    assert repr(MultiStep(0.1, at=[1, 2], factor=0.5)) == "MultiStep(lr=0.1, at=(1, 2), factor=0.5)"


REFUSED: list[tuple[Any, str]] = [
    (lambda: FunctionSchedule(lambda count: 0)(0),
     "expected a float64 without axes, computed by ops from the count, got 0"),
    (lambda: FunctionSchedule(lambda count: ops.cast(count, "float32"))(0), "got float32 of shape ()"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "text"), REFUSED)
def test_what_no_schedule_is_made_of(make: Any, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        make()
    assert text in str(caught.value)

"""A rate that follows what was measured: PyTorch's rates, the same bits in every mode, recorded and saved."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Callback, CapturedStep, ReduceLROnPlateau, Trainer
from dgrr.runtime.optim import Constant, HeldRate, Joined, WarmUp
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DomainError, ops
from dgrr.trace import open_trace, replay

FIGURES = [5.0, 4.0, 4.0, 3.9999, 3.0, float("nan"), 3.0, 3.1, 2.9999, 2.9, 3.5, 3.6, 3.7, 3.8, 1.0, 1.0, 1.0, 1.0, 1.0]
OPTIONS: list[dict[str, Any]] = [
    {"mode": mode, "threshold_mode": how, **more}
    for mode, how, more in product(
        ("min", "max"),
        ("rel", "abs"),
        (
            {"patience": 0, "factor": 0.3},
            {"patience": 1, "factor": 0.5, "cooldown": 2},
            {"patience": 0, "factor": 0.1, "min_lr": 0.003, "threshold": 0.2},
            {"patience": 0, "factor": 0.5, "eps": 0.02},
        ),
    )
]


@pytest.mark.parametrize("options", OPTIONS)
def test_rates_are_pytorchs(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="the comparison needs PyTorch: pip install -e '.[test,torch]'")
    plateau = ReduceLROnPlateau(0.1, **options)
    peer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(peer, **options)
    rates = list[float]()
    for step, figure in enumerate(FIGURES, 1):
        trainer: Any = type("Stepped", (), {"steps": step})()
        plateau.on_validation(trainer, step - 1, {"validation_loss": figure})
        scheduler.step(figure)
        assert plateau.lr.now == peer.param_groups[0]["lr"]
        rates.append(plateau.lr.now)
    assert len(set(rates)) > 1


class Rates(Callback):
    """The rate that each step is to have."""

    def __init__(self, plateau: ReduceLROnPlateau) -> None:
        self.plateau, self.seen = plateau, list[float]()

    def on_begin(self, trainer: Trainer, steps: int) -> None:
        self.seen.append(self.plateau.lr.now)

    def on_epoch(self, trainer: Trainer, epoch: int, loss: float) -> None:
        self.seen.append(self.plateau.lr.now)


LOSSES = [1.0, 1.25, 1.25, 0.75, 0.875, 0.5, 0.75, 1.5]


def new(path: Path | None = None, **more: Any) -> tuple[Trainer, Rates]:
    """A trainer whose loss is a number of each batch, and so is its gradient."""
    plateau = ReduceLROnPlateau(0.5, monitor="loss", factor=0.25, patience=0, threshold=0.0)
    rates = Rates(plateau)
    trainer = Trainer(loss_fn, {"w": np.ones(1)}, SGD(plateau.lr), callbacks=[plateau, rates], trace=path, **more)
    return trainer, rates


def loss_fn(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum() - (ops.stop_gradient(p["w"] - 1.0) * x).sum()


BATCHES = [[np.array([loss])] for loss in LOSSES]


class Epochs:
    """One batch in each epoch."""

    def __init__(self) -> None:
        self.epoch = -1

    def __iter__(self) -> Any:
        self.epoch += 1
        return iter(BATCHES[self.epoch])


def test_every_mode_uses_the_rates_that_the_trace_records(tmp_path: Path) -> None:
    found = {}
    for mode in ("eager", "replay"):
        path = tmp_path / f"{mode}.dgrr"
        trainer, rates = new(path, mode=mode)
        trainer.fit(Epochs(), epochs=len(LOSSES))
        w, expected = 1.0, list[float]()
        for rate, loss in zip(rates.seen, LOSSES, strict=False):
            w -= rate * loss
            expected.append(rate)
        assert trainer.params["w"] == w
        with open_trace(path) as trace:
            assert [step.hyper["lr"] for step in trace] == expected
        assert len(set(expected)) == 5
        assert replay(path).ok
        assert replay(path, loss_fn=loss_fn, batches=[batch for epoch in BATCHES for batch in epoch]).ok
        found[mode] = expected
    assert found["eager"] == found["replay"]


@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_a_run_that_goes_on_has_the_rates_of_a_whole_one(tmp_path: Path, mode: Any) -> None:
    whole, rates = new(mode=mode)
    whole.fit(Epochs(), epochs=len(LOSSES))
    first, _ = new(mode=mode, checkpoint=tmp_path / "third.ckpt")
    first.fit(Epochs(), epochs=3)
    second, others = new(mode=mode)
    second.load(tmp_path / "third.ckpt")
    second.fit(Epochs(), epochs=len(LOSSES))
    assert second.params["w"] == whole.params["w"]
    assert others.seen[-5:] == rates.seen[-5:]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"lr": -1.0}, "'lr': expected a finite number of at least 0, got -1.0"),
        ({"factor": 1.0}, "'factor': expected a number from 0 to below 1, got 1.0"),
        ({"patience": -1}, "'patience': expected a whole number of at least 0, got -1"),
        ({"cooldown": 0.5}, "'cooldown': expected a whole number of at least 0, got 0.5"),
        ({"threshold_mode": "both"}, "'threshold_mode': expected 'rel' or 'abs', got 'both'"),
        ({"threshold": -0.1}, "'threshold': expected a finite number of at least 0, got -0.1"),
        ({"min_lr": float("nan")}, "'min_lr': expected a finite number of at least 0, got nan"),
        ({"eps": -1e-9}, "'eps': expected a finite number of at least 0, got -1e-09"),
        ({"mode": "least"}, "'mode': expected 'min' or 'max', got 'least'"),
    ],
)
def test_what_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(DomainError) as error:
        ReduceLROnPlateau(**{"lr": 0.1, **options})
    assert str(error.value) == f"ReduceLROnPlateau: argument {text}"


def test_where_a_rate_that_is_set_may_not_stand() -> None:
    with pytest.raises(DomainError, match="argument 'schedule': expected a schedule of a formula"):
        WarmUp(HeldRate(0.1), steps=3)
    with pytest.raises(
        DomainError, match=r"^HeldRate\.set: argument 'rate': expected a finite number of at least 0, got -"
    ):
        HeldRate(0.1).set(-0.5)
    for rate in (HeldRate(0.1), Joined([Constant(0.2), HeldRate(0.1)], at=[3])):
        with pytest.raises(DomainError) as error:
            CapturedStep(loss_fn, {"w": np.ones(1)}, Recipe(SGD(rate)), device="cuda")
        assert str(error.value) == (
            f"device: expected rates that follow the count of steps on 'cuda', got {rate!r}, which is set between "
            "steps; use device='cpu'"
        )


@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_a_joined_rate_is_read_where_it_lies(mode: Any) -> None:
    rate = HeldRate(0.25)

    def set_rate(trainer: Trainer, epoch: int, loss: float) -> None:
        rate.set(rate.now / 2)

    trainer = Trainer(
        loss_fn, {"w": np.ones(1)}, SGD(Joined([Constant(0.5), rate], at=[2])), callbacks=[set_rate], mode=mode
    )
    trainer.fit([np.array([1.0])], epochs=5)
    assert trainer.params["w"] == 1.0 - (0.5 + 0.5 + 0.25 / 4 + 0.25 / 8 + 0.25 / 16)

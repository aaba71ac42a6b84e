"""Callbacks: when they are called, with what, and how they end a fit."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Callback, Result, Trainer
from dgrr.runtime.training.checkpoint import read_checkpoint
from dgrr.trace import open_trace

BATCHES = [np.full(2, float(k)) for k in range(3)]


def loss_fn(p: Any, batch: Any) -> Any:
    return (batch * p["w"]).sum()


def new_trainer(*callbacks: Callback, **options: Any) -> Trainer:
    """With a learning rate of 0 the losses are 0, 2, 4, 0, 2, 4, …"""
    return Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.0), callbacks=callbacks, **options)


class Noted(Callback):
    """Writes down its calls; ends the fit at one of them."""

    def __init__(self, end: tuple[Any, ...] = ()) -> None:
        self.calls, self.end = list[tuple[Any, ...]](), end

    def on_step(self, trainer: Trainer, step: int, loss: float) -> bool:
        assert type(loss) is float
        assert trainer.steps == step + 1
        return self.note("step", step, loss)

    def on_epoch(self, trainer: Trainer, epoch: int, loss: float) -> bool:
        return self.note("epoch", epoch, loss)

    def on_end(self, trainer: Trainer, result: Result) -> None:
        self.note("end", result.steps, result.losses.tolist())

    def note(self, *call: Any) -> bool:
        self.calls.append(call)
        return call[:2] == self.end


FIRST = [("step", 0, 0.0), ("step", 1, 2.0), ("step", 2, 4.0), ("epoch", 0, 4.0)]
SECOND = [("step", 3, 0.0), ("step", 4, 2.0), ("step", 5, 4.0), ("epoch", 1, 4.0)]


@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_callbacks_are_told_of_every_step_and_epoch(mode: str) -> None:
    noted, again = Noted(), Noted()
    new_trainer(noted, again, mode=mode).fit(BATCHES, epochs=2)
    assert noted.calls == again.calls == [*FIRST, *SECOND, ("end", 6, [0.0, 2.0, 4.0] * 2)]


def test_an_epoch_that_is_cut_short_is_told_too() -> None:
    noted = Noted()
    new_trainer(noted).fit(BATCHES, steps=4)
    assert noted.calls == [*FIRST, ("step", 3, 0.0), ("epoch", 1, 0.0), ("end", 4, [0.0, 2.0, 4.0, 0.0])]


def test_a_fit_without_steps_has_only_an_end() -> None:
    noted = Noted()
    new_trainer(noted).fit(BATCHES, steps=0)
    assert noted.calls == [("end", 0, [])]


STOPS: list[tuple[tuple[Any, ...], Sequence[tuple[Any, ...]]]] = [
    (("step", 1), [*FIRST[:2], ("epoch", 0, 2.0), ("end", 2, [0.0, 2.0])]),
    (("step", 2), [*FIRST, ("end", 3, [0.0, 2.0, 4.0])]),
    (("epoch", 0), [*FIRST, ("end", 3, [0.0, 2.0, 4.0])]),
]


@pytest.mark.parametrize(("end", "calls"), STOPS)
def test_true_ends_a_fit_in_good_order(tmp_path: Path, end: tuple[Any, ...], calls: Any) -> None:
    noted, after = Noted(end), Noted()
    path = tmp_path / "run.dgrr"
    trainer = new_trainer(noted, after, trace=path, checkpoint=tmp_path / "run.ckpt")
    result = trainer.fit(BATCHES, epochs=5)
    assert noted.calls == after.calls == calls
    assert trainer.steps == result.steps
    with open_trace(path) as trace:
        assert trace.sealed
        assert trace.loss.tolist() == result.losses.tolist()
    again = new_trainer(checkpoint=tmp_path / "run.ckpt", trace=path)
    again.load(tmp_path / "run.ckpt")
    assert again.fit(BATCHES, epochs=5).steps == 0


def test_every_checkpoint_knows_that_the_fit_was_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stopped, replace = tmp_path / "run.ckpt", list[Any](), os.replace

    def noted(source: Any, target: Any) -> None:
        replace(source, target)
        cursor = read_checkpoint(path).cursor
        stopped.append(cursor and cursor.stopped)

    monkeypatch.setattr(os, "replace", noted)
    new_trainer(Noted(("step", 1)), checkpoint=path, checkpoint_every=1).fit(BATCHES, epochs=5)
    assert stopped == [False, False, True, True]


class Failing(Callback):
    def on_step(self, trainer: Trainer, step: int, loss: float) -> bool | None:
        if step == 1:
            raise ZeroDivisionError("mine")
        return None


def test_an_exception_passes_through_and_the_step_before_it_is_whole(tmp_path: Path) -> None:
    noted, path = Noted(), tmp_path / "run.dgrr"
    trainer = new_trainer(noted, Failing(), trace=path)
    with pytest.raises(ZeroDivisionError, match="mine"):
        trainer.fit(BATCHES)
    assert noted.calls == FIRST[:2]
    assert trainer.steps == 2
    with open_trace(f"{path}.partial", mode="tolerate_tail") as trace:
        assert trace.loss.tolist() == [0.0, 2.0]
